package web

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Domain is a public name of a site, whose certificate something else keeps valid in two files.
type Domain struct {
	name, certificate, key string

	mu      sync.Mutex
	looked  time.Time // by the monotonic clock
	changed [2]time.Time
	cert    *tls.Certificate // nil while it cannot be used
	failed  string
}

// lookEvery is how seldom the files are looked at. They are when a client asks for the name.
const lookEvery = time.Minute

// NewDomain returns a domain, which may have a port, with the PEM files of its certificate and of
// that certificate's key. The files are in folder, or named by absolute paths. While they cannot be
// used, it logs that, and the site shows the certificate of its own key. "" means no domain.
func NewDomain(domain, folder, certificate, key string) *Domain {
	if domain == "" {
		return nil
	}
	for _, file := range []*string{&certificate, &key} {
		if !filepath.IsAbs(*file) {
			*file = filepath.Join(folder, *file)
		}
	}
	name := domain
	if host, _, err := net.SplitHostPort(domain); err == nil {
		name = host
	}
	d := &Domain{name: name, certificate: certificate, key: key}
	d.load()
	return d
}

// get returns the certificate for a client that asks for a name; nil for none.
func (d *Domain) get(name string) *tls.Certificate {
	if d == nil || !strings.EqualFold(name, d.name) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.looked) >= lookEvery {
		d.load()
	}
	return d.cert
}

// load reads the files if they have changed. One that was renewed in part leaves the earlier
// certificate.
func (d *Domain) load() {
	d.looked = time.Now()
	var changed [2]time.Time
	var err error
	for i, file := range []string{d.certificate, d.key} {
		info, e := os.Stat(file)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		changed[i] = info.ModTime()
	}
	if err == nil && changed == d.changed && d.cert != nil {
		return
	}
	var cert tls.Certificate
	if err == nil {
		cert, err = tls.LoadX509KeyPair(d.certificate, d.key)
	}
	if err == nil {
		err = cert.Leaf.VerifyHostname(d.name)
	}
	if err != nil {
		if d.failed != err.Error() {
			slog.Error("domain's certificate cannot be used", "domain", d.name, "err", err)
		}
		d.failed = err.Error()
		return
	}
	d.cert, d.changed, d.failed = &cert, changed, ""
}
