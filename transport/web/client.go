package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"

	"agentsite/transport/rpc"
)

// Client is a Caller of a site's /mcp.
type Client struct {
	URL   string
	Token string // "" where the connection proves the caller
	Codec rpc.Codec
	HTTP  *http.Client
}

var _ rpc.Caller = (*Client)(nil)

func (c *Client) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	var body bytes.Buffer
	if err := rpc.EncodeRequest(c.Codec, &body, r); err != nil {
		return rpc.Raw{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, &body)
	if err != nil {
		return rpc.Raw{}, err
	}
	a := answer{codec: c.Codec}
	req.Header.Set("Content-Type", c.Codec.ContentType())
	req.Header.Set("Accept", c.Codec.ContentType()+", "+a.streamType())
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	req.Header.Set("Mcp-Protocol-Version", r.Version)
	req.Header.Set("Mcp-Method", r.Method)
	if r.Name != "" {
		req.Header.Set(nameHeader, encodeHeader(r.Name))
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return rpc.Raw{}, err
	}
	defer res.Body.Close()
	limited := io.LimitReader(res.Body, rpc.MaxAnswer)
	switch media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); media {
	case "text/event-stream":
		return readStream(rpc.JSON, events(res.Body), note)
	case "application/cbor-seq":
		return readStream(rpc.CBOR, rpc.NewSequence(res.Body).Next, note)
	case rpc.JSON.ContentType(), rpc.CBOR.ContentType():
		b, err := io.ReadAll(limited)
		if err != nil {
			return rpc.Raw{}, err
		}
		raw, _, _, err := rpc.DecodeResponse(codecOf(media), b)
		return raw, err
	}
	if res.StatusCode >= http.StatusInternalServerError { // of a proxy's, whose codes are those of our faults
		return rpc.Raw{}, rpc.Errorf(res.StatusCode, "%s answered %s: try again later", c.URL, res.Status)
	}
	return rpc.Raw{}, fmt.Errorf("%s answered %s, which no AgentSite does", c.URL, res.Status)
}

// readStream reads messages, each from next, until the response.
func readStream(codec rpc.Codec, next func() ([]byte, error), note func(string, rpc.Raw)) (rpc.Raw, error) {
	for {
		message, err := next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return rpc.Raw{}, err
		}
		raw, method, params, err := rpc.DecodeResponse(codec, message)
		if err != nil || method == "" {
			return raw, err
		}
		if note != nil {
			note(method, params)
		}
	}
}

// events returns a function that returns the data of the next server-sent event.
func events(r io.Reader) func() ([]byte, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, rpc.MaxAnswer)
	return func() ([]byte, error) {
		for lines.Scan() {
			if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
				return bytes.Clone(data), nil
			}
		}
		return nil, errors.Join(io.ErrUnexpectedEOF, lines.Err())
	}
}

// Ping asks whether the site is there, and returns where it answered.
func (c *Client) Ping(ctx context.Context) (at string, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { at = i.Conn.RemoteAddr().String() }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/mcp")+"/healthz", nil)
	if err != nil {
		return "", err
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return at, fmt.Errorf("%s answered %s, which no AgentSite does", c.URL, res.Status)
	}
	return at, nil
}
