// Package client calls a site's owner methods with typed requests and responses. Answers of a site
// are untrusted data. Everything signed for it names the key that it proved. An answer is passed on
// as a token, a code or an address only if it has that form.
//
// It may import transport/owner and the packages that this may import, but no carrier and not the
// MCP client. The caller passes in how a method is called.
package client
