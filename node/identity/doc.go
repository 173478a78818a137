// Package identity identifies a site, an owner or an agent by one Ed25519 key. The public key has
// two names: the peer ID of libp2p and a did:key. The package signs and verifies, each signature
// for one purpose, and has the codec for signed data.
//
// The package knows no files, networks or permissions.
package identity
