package oauth

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// pageHeaders keeps a page from being framed, kept or told to others. A form-action would keep browsers from
// following the way back to the client, and an opener policy would part the client's window from this one.
func pageHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// The end of a long host tells whose it is: it is on the next line, and not beyond the edge.
const pageStart = `<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">` +
	`<meta name=robots content=noindex>%s<title>Sign in</title><style>` +
	`body{font:1.1em/1.5 system-ui,sans-serif;max-width:34em;margin:2em auto;padding:0 1em;overflow-wrap:anywhere;color-scheme:light dark}` +
	`code{font-size:1.1em}.code{font:bold 2em ui-monospace,monospace;letter-spacing:.1em}code,.code{user-select:all}q{font-weight:bold}</style>`

// show writes a page. head is further elements of its head.
func (s *Server) show(w http.ResponseWriter, status int, head, body string) {
	pageHeaders(w)
	w.WriteHeader(status)
	fmt.Fprintf(w, pageStart+"<main><h1>%s</h1>%s</main>", head, html.EscapeString(s.Name), body)
}

// refresh has the browser load a page again after so many seconds.
func refreshAfter(seconds int, url string) string {
	if url != "" {
		url = ";url=" + html.EscapeString(url)
	}
	return fmt.Sprintf(`<meta http-equiv=refresh content="%d%s">`, seconds, url)
}

// showWaiting shows who asks, and how an owner answers.
func (s *Server) showWaiting(w http.ResponseWriter, q *request) {
	var b strings.Builder
	fmt.Fprintf(&b, "<p>A program that calls itself <q>%s</q> asks for the use of this site. You will be sent back to <b>%s</b>.",
		html.EscapeString(q.client.Name), html.EscapeString(hostOf(q.redirect)))
	if isLocal(q.redirect) {
		b.WriteString(" That is a program on the computer of this browser: go on only if you started it yourself.")
	}
	fmt.Fprintf(&b, "<p>It asks for: <b>%s</b>.<p>This page cannot allow it. An owner of the site does, with this code:"+
		"<p class=code>%s<p>On the owner's computer, under <b>Waiting</b> in the page that <code>agentsite open</code> shows, "+
		"or by this command:<p><code>agentsite approve %[2]s --may 'read *'</code>"+
		"<p>Keep this page open. It goes on by itself.", html.EscapeString(strings.Join(q.asks, ", ")), q.handle)
	s.show(w, http.StatusOK, refreshAfter(2, ""), b.String())
}

// showApp sends the browser to an app, which some browsers do only by a tap.
func (s *Server) showApp(w http.ResponseWriter, q *request, to string) {
	s.show(w, http.StatusOK, refreshAfter(0, to), fmt.Sprintf("<p>The owner has answered. <a href=\"%s\">Go back to %s</a>",
		html.EscapeString(to), html.EscapeString(q.client.Name)))
}

// showRefused tells the person why a client's request is refused, and leads back to the client by a link.
func (s *Server) showRefused(w http.ResponseWriter, q *request, why, to string) {
	s.show(w, http.StatusBadRequest, "", fmt.Sprintf("<p>This cannot go on: %s.<p><a href=\"%s\">Tell the program at %s</a>",
		html.EscapeString(why), html.EscapeString(to), html.EscapeString(hostOf(q.redirect))))
}

func (s *Server) showDone(w http.ResponseWriter, q *request) {
	s.show(w, http.StatusOK, "", fmt.Sprintf("<p><q>%s</q> is signed in. You can close this page.", html.EscapeString(q.client.Name)))
}

// showFailure tells the person what is wrong where no client can be told.
func (s *Server) showFailure(w http.ResponseWriter, r *http.Request, status int, why string) {
	s.log(r, "", why)
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "10")
	}
	s.show(w, status, "", "<p>This cannot go on: "+html.EscapeString(why))
}
