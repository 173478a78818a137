// Package dht is the global network as a medium: sites are found in a Kademlia DHT by
// what they can do, under names that only their realm can make. What it says is a hint:
// a site itself shows its card, and who does not is not there.
package dht

import _ "github.com/libp2p/go-libp2p-kad-dht"
