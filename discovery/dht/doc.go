// Package dht is a medium in the global network. It finds sites in a Kademlia DHT by their
// capabilities, under names that only members of their realm can derive. The DHT gives hints: each
// site itself has to show its card.
//
// The library is kad-dht, unchanged, which trusts its input too much. This package validates all
// messages of the library, so that no peer can crash the program or fill its memory. sender and
// decodeAnswer check requests and their answers; limitedHost, sanitizeRequest and store protect a
// server.
package dht
