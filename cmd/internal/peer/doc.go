// Package peer is the client's side: the keys, contacts and realms of this machine's user
// and of the user's agents, the routes to a site, and sessions with it over each of them.
//
// It may import agents and agents/remote, node for the group of sites that connect
// presents, node/access, node/identity and node/state for permissions and files, transport,
// discovery and cmd/internal/internet. It knows no device and no part of a running site.
package peer
