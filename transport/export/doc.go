// Package export sends what the site's history has to a store that outlives the board, or that many boards share, by
// Prometheus remote write 1.0. It is a kind of hosted agent: it reads the history with a permission of its own. The
// history is its queue: it stores only up to which time each point was sent.
package export
