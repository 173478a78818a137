// Package public carries TLS connections of a site's public name. A relay reads the name in a caller's
// ClientHello and copies the bytes, unread, to a libp2p stream on the site's own connection. The site ends
// TLS on that stream. The relay has no key of the name.
//
// It knows no HTTP and no certificate: Listener is a net.Listener for a TLS server.
package public
