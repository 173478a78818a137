package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"

	httpcarrier "agentsite/transport/http"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"
	"agentsite/transport/stdio"
)

// Target says which site the command line speaks to: the one of a data folder,
// one that this user knows, or one behind a URL.
type Target struct {
	Folder    Folder
	Site      string // a name of Known's
	Peer      string // the peer ID or did:key of a site, wherever that is
	As        string // with Site or Peer: an agent of the user's, "" for the user
	URL       string
	TokenFile string // with URL; the folder's token where empty
	CBOR      bool   // with Site or URL: speak CBOR
	Version   string
}

// Dial connects to a site. Close what it returns.
func Dial(t Target) (*client.Client, io.Closer, error) {
	if t.Site != "" || t.Peer != "" {
		return dialKnown(t)
	}
	if t.URL != "" {
		c, err := dialHTTP(t)
		return c, io.NopCloser(nil), err
	}
	return dialSocket(t.Folder, t.Folder.OwnerSocket(), t.Version)
}

// dialSocket connects to the site that runs from a folder, through one of its sockets.
func dialSocket(f Folder, socket, version string) (*client.Client, io.Closer, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nil, f.notRunning(err)
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
		return nil, fmt.Errorf("%s would send the token in the clear: plain HTTP is for this machine only", t.URL)
	}
	file := t.TokenFile
	if file == "" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("the token of %s is in no folder here: name its file with --token-file", t.URL)
	}
	if file == "" {
		file = t.Folder.TokenFile()
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("no token for %s: %w; name its file with --token-file", t.URL, err)
	}
	secret := strings.TrimSpace(string(token))
	if !isToken(secret) {
		return nil, fmt.Errorf("%s holds no token, which is 64 hexadecimal digits: copy the site's file named token anew", file)
	}
	codec := rpc.JSON
	if t.CBOR {
		codec = rpc.CBOR
	}
	c := &httpcarrier.Client{URL: u.String(), Token: secret, Codec: codec, HTTP: http.DefaultClient}
	return client.New(c, "agentsite", t.Version), nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Connect is the door for a client that speaks MCP over standard input and
// output: it carries bytes to and from the site that runs on this machine, and
// opens no hardware.
func Connect(ctx context.Context, f Folder, in io.Reader, out io.Writer) error {
	conn, err := net.Dial("unix", f.AgentSocket())
	if err != nil {
		return f.notRunning(err)
	}
	return stdio.Pipe(ctx, in, out, conn)
}

func (f Folder) notRunning(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the site's socket is not open to you: %w; be its user or in its group", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no site runs from %s: start one with agentsite run, or name its folder with --data", f)
	}
	return err
}
