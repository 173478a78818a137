// Package peer is the client's side of a site: the sites that a person or an agent knows,
// how they are reached, and what is proven to them. The command line and connect use it.
package peer
