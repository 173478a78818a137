// Package certificate keeps a certificate for one name, from an authority that speaks ACME (RFC 8555), by the
// challenge TLS-ALPN-01 (RFC 8737).
//
// Authorities permit few certificates a week. Each order is written down before it is made, one that was begun is
// gone on with after a crash, and no caller's handshake causes one.
package certificate
