// Package peer is the client's side. It has the keys, contacts and realms of this machine's user
// and of the user's agents, the routes to a site, and sessions over them. It knows no device and no
// part of a running site.
package peer
