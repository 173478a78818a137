// Package rule is the hosted agent that follows a rule of the site's owner: it holds outputs
// while a condition is true, or moves them at an event or a time. Its Machine decides, over
// plain values and a time that is passed in; Rule runs one on a site as it is, and package
// trial runs one over what was. The expressions are those of package expr, the times those of
// package calendar.
package rule
