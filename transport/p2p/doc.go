// Package p2p carries messages over libp2p: TCP and QUIC, through home routers by hole
// punching, and over relays where nothing else goes. A stream's protocol names its
// encoding, and the peer ID that the handshake proved is the Evidence.
//
// The host is put together by hand: the library's own constructor links WebRTC and
// WebTransport, 5.6 MB that no home needs. Nothing may enter here that knows a tool, a
// permission or what is announced; who gets a place that is kept is asked of the wiring.
package p2p
