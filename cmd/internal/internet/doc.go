// Package internet runs one peer of the global network: a libp2p host with the DHT, gossip
// and the card protocol. A site uses it to announce itself, a client to look sites up, and a
// relay to serve both.
//
// It may import transport/p2p, discovery and its media, node/identity and node/state for
// keys and the relay's folder, node/config for a site's section, and cmd/internal/memory.
package internet
