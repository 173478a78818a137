package web

import (
	_ "embed"
	"net/http"
)

//go:embed help.html
var helpPage []byte

// help says what this is to somebody who opens the address in a browser. It is
// the same on every site: it tells nothing about this one.
func help(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.Write(helpPage)
}
