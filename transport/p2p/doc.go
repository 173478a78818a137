// Package p2p carries messages over libp2p: TCP and QUIC, through home routers by hole
// punching, and over relays where nothing else works. A stream's protocol names its encoding,
// and the peer ID that the handshake proved is the Key of its Sender.
//
// The host is assembled by hand: the library's constructor links WebRTC and WebTransport,
// 5.6 MB that no site needs. This package knows no tool, permission or announcement; the
// wiring passes in which peers have an account.
package p2p
