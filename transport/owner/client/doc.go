// Package client calls a site's owner methods with typed requests and responses. What a site
// answers is data: whatever is signed for it names the key that it proved, and an answer is
// never passed on as a token, a code or an address when it has not that form.
//
// It may import transport/owner and what that may, but no carrier and not the MCP client:
// the caller passes in how a method is called.
package client
