package supervisortest

import (
	"io"
	"net"
	"net/http"
	"strings"
)

// Ingress is Home Assistant with its Supervisor as a browser meets them: the pages of an app are below
// /api/hassio_ingress/TOKEN/, for whoever has the cookie of a session of Home Assistant. At every other path it
// answers with a document that shows the app in a frame, and gives a session.
type Ingress struct {
	App     string // where the app listens
	Token   string // the app's, in the path
	Session string // of a user
	User    string // the user's name
	From    net.IP // the Supervisor's address; nil for any
}

// Prefix is the path of the app's page.
func (in *Ingress) Prefix() string { return "/api/hassio_ingress/" + in.Token + "/" }

// not are the headers that neither Core nor the Supervisor passes on.
var not = []string{
	"Content-Length", "Content-Encoding", "Transfer-Encoding", "X-Supervisor-Token", "X-Hassio-Key",
	"X-Remote-User-Id", "X-Remote-User-Name", "X-Remote-User-Display-Name",
}

func (in *Ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, below := strings.CutPrefix(r.URL.EscapedPath(), in.Prefix())
	if !below {
		http.SetCookie(w, &http.Cookie{Name: "ingress_session", Value: in.Session, Path: "/api/hassio_ingress/", SameSite: http.SameSiteStrictMode})
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, `<!doctype html><title>Home Assistant</title><iframe style="width:100%;height:90vh" src="`+in.Prefix()+`"></iframe>`)
		return
	}
	if c, err := r.Cookie("ingress_session"); err != nil || c.Value != in.Session {
		http.Error(w, "401: Unauthorized", http.StatusUnauthorized)
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+in.App+"/"+path, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	req.ContentLength, req.URL.RawQuery = r.ContentLength, r.URL.RawQuery
	req.Host, req.Header = r.Host, r.Header.Clone()
	for _, name := range not {
		req.Header.Del(name)
	}
	req.Header.Set("X-Hass-Source", "core.ingress")
	req.Header.Set("X-Ingress-Path", strings.TrimSuffix(in.Prefix(), "/"))
	req.Header.Set("X-Forwarded-Host", r.Host)
	req.Header.Set("X-Forwarded-Proto", "http")
	req.Header.Set("X-Remote-User-Id", "0a1b2c3d")
	req.Header.Set("X-Remote-User-Name", in.User)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: in.From}}
	one := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	res, err := one.RoundTrip(req)
	if err != nil {
		http.Error(w, "502: Bad Gateway", http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	for name, values := range res.Header {
		if name != "Content-Length" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(res.StatusCode)
	flush := http.NewResponseController(w)
	buf := make([]byte, 4096)
	for {
		n, err := res.Body.Read(buf)
		w.Write(buf[:n])
		flush.Flush()
		if err != nil {
			return
		}
	}
}
