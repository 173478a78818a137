package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"strings"
	"syscall"
	"time"

	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"
	"agentsite/transport/stdio"
	"agentsite/transport/web"
)

// Target names one site: that of a data folder, a contact or key, or one behind a URL.
type Target struct {
	Folder    state.Folder
	Site      string // a contact's name
	Peer      string // a site's peer ID or did:key
	As        string // with Site or Peer: the user's agent that calls, "" for the user
	URL       string
	TokenFile string // with URL; the folder's token where empty
	CACert    string // with an https URL: the file with the only certificate to trust
	CBOR      bool   // with Site or URL: speak CBOR
	Version   string
	Wait      time.Duration // with Site or Peer: how long to retry; 0 for one try of DefaultTimeout
	Progress  func(string)  // reports slow steps, and findings; may be nil
}

const (
	// DefaultTimeout bounds the search for a route to a site.
	DefaultTimeout = 4 * time.Second
	// firstAnswerTimeout bounds a site's first answer after that.
	firstAnswerTimeout = 10 * time.Second
	// routesTimeout bounds the question to a site on this machine where it listens.
	routesTimeout = 5 * time.Second
)

func (t Target) timeout() time.Duration { return cmp.Or(t.Wait, DefaultTimeout) }

// Dial connects to a site. The caller closes the connection.
func Dial(t Target) (*Connection, error) {
	if t.Site != "" || t.Peer != "" {
		c, _, err := dialSite(t)
		return c, err
	}
	if t.URL != "" {
		c, err := dialHTTP(t)
		if err != nil {
			return nil, err
		}
		return connected(c, io.NopCloser(nil), identity.ID{}, ""), nil
	}
	c, conn, err := dialSocket(t.Folder, t.Folder.SocketPath(state.OwnerSocket), t.Version)
	if err != nil {
		return nil, err
	}
	return connected(c, conn, identity.ID{}, ""), nil
}

// dialSocket connects to the site that runs from a folder, through one of its sockets.
func dialSocket(f state.Folder, socket, version string) (*client.Client, io.Closer, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nil, notRunning(f, err)
	}
	stream := rpc.NewStreamClient(conn, rpc.JSON)
	go stream.Run() // ends with conn
	return client.New(stream, "agentsite", version), conn, nil
}

func dialHTTP(t Target) (*client.Client, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("--url takes an address such as http://127.0.0.1:8473, not %q", t.URL)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("plain HTTP to %s would send the token unencrypted: use https, or --site", t.URL)
	}
	file := t.TokenFile
	if file == "" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("the data folder has no token for %s: name its file with --token-file", t.URL)
	}
	if file == "" {
		file = t.Folder.Path(state.TokenFile)
		if u.Scheme == "http" { // over HTTPS it proves its key
			if err := checkListens(t.Folder, u); err != nil {
				return nil, err
			}
		}
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("no token for %s: %w; name its file with --token-file", t.URL, err)
	}
	secret := strings.TrimSpace(string(token))
	if !state.IsToken(secret) {
		return nil, fmt.Errorf("%s does not contain a token (64 hexadecimal digits): copy the site's file named token again", file)
	}
	codec := rpc.JSON
	if t.CBOR {
		codec = rpc.CBOR
	}
	trusted, err := trustedBy(t)
	if err != nil {
		return nil, err
	}
	over := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	c := &web.Client{URL: u.String(), Token: secret, Codec: codec, HTTP: over}
	return client.New(c, "agentsite", t.Version), nil
}

// checkListens verifies, over the site's own socket, that the folder's site serves plain HTTP
// at a URL, and sets the URL's host to its listener's. Where it fails another program may
// listen there, which must not get the folder's token.
func checkListens(f state.Folder, u *url.URL) error {
	ctx, cancel := context.WithTimeout(context.Background(), routesTimeout)
	defer cancel()
	c, err := Dial(Target{Folder: f})
	var all acts.Routes
	if err == nil {
		defer c.Close()
		all, err = ownerclient.Call(ctx, c.Owner, acts.RoutesAct, acts.None{})
	}
	for _, c := range all.Carriers {
		at, err := url.Parse(c.Address)
		if err == nil && c.Kind == acts.HTTPCarrier && at.Port() == u.Port() && (at.Host == u.Host || u.Hostname() == "localhost") {
			u.Host = at.Host
			return nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the site in %s listens at another address", f)
	}
	return &url.Error{Op: "dial", URL: u.String(), Err: fmt.Errorf("%w, and its token is sent to that site only (--token-file names another)", err)}
}

// trustedBy returns the CA certificates for a site behind a URL: that of CACert, or those of
// this machine and of the folder's own site.
func trustedBy(t Target) (*x509.CertPool, error) {
	if t.CACert != "" {
		text, err := os.ReadFile(t.CACert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--cacert: %s contains no PEM certificate; agentsite identity --certificate prints a site's", t.CACert)
		}
		return pool, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if key, err := t.Folder.ReadKey(); err == nil { // without a key there is no site
		der, err := web.Authority(key)
		if err != nil {
			return nil, err
		}
		own, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		pool.AddCert(own)
	}
	return pool, nil
}

// loopback reports whether a host is this machine, by its address or as localhost.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Connect copies bytes between an MCP client on in and out and the site that runs from the
// folder. It opens no hardware.
func Connect(ctx context.Context, f state.Folder, in io.Reader, out io.Writer) error {
	conn, err := net.Dial("unix", f.SocketPath(state.AgentSocket))
	if err != nil {
		return notRunning(f, err)
	}
	return stdio.Pipe(ctx, in, out, conn)
}

func notRunning(f state.Folder, err error) error {
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
	if gone && f.IsDefault() {
		if demo := state.RunningDemo(); demo != "" {
			return fmt.Errorf("no site is running from %s; agentsite demo is: use it with %s", f, demo.Command())
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		group, who := state.Group(string(f)), "$USER"
		if group == "" || group == "root" { // that group gives more rights than a site needs
			return fmt.Errorf("you may not use the site in %s: %w; put sudo before this command", f, err)
		}
		if u, err := user.Current(); err == nil {
			who = u.Username
		}
		return fmt.Errorf("you may not use the site in %s: %w; join its group with sudo usermod --append --groups %s %s and log in again, or put sudo before this command", f, err, state.ShellQuote(group), state.ShellQuote(who))
	case f == state.ServiceFolder && gone:
		return errors.New("the agentsite service of this machine is not running: start it with sudo systemctl start agentsite; journalctl -u agentsite shows why it ended")
	case gone:
		return fmt.Errorf("no site is running from %s: start one with agentsite run, or name its folder with --data", f)
	}
	return err
}
