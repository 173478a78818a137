// Package identity identifies a site, an owner or an agent by one Ed25519 key, whose public
// half has two names, the peer ID of libp2p and a did:key. It signs and verifies, each
// signature for one purpose, and has the codec for what is signed.
//
// The package knows no files, networks or permissions.
package identity
