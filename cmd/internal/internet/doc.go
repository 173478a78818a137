// Package internet joins libp2p, the DHT, gossip and the card protocol into a program's
// part in the global network: for a site that announces itself, for a person who looks
// sites up, and for a relay.
//
// It may import transport/p2p, discovery and its media, node/identity and node/state for
// keys and the relay's folder, and cmd/internal/memory.
package internet
