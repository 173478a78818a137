// Package identity is who a site, an owner or an agent is: one Ed25519 key, whose
// public half has two names, the peer ID of libp2p and a did:key. It signs and
// verifies, each signature for one purpose.
//
// What an identity may do stands in node/access; where keys are kept is the
// wiring's. Files, networks and permissions may not enter.
package identity
