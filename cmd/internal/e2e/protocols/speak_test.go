//go:build e2e

package protocols

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"

	"agentsite/transport/mcp/client"

	libp2p "github.com/libp2p/go-libp2p/core/peer"
)

// dial connects over HTTP with the caller's token.
func (s *site) dial(t *testing.T, cbor bool) *client.Client {
	t.Helper()
	file := filepath.Join(harness.TempDir(t), "token")
	if err := os.WriteFile(file, []byte(s.token), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := peer.Dial(peer.Target{Folder: state.Folder(s.Folder), URL: s.URL, TokenFile: file, CBOR: cbor, Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.Client
}

// dialPeer connects over libp2p, with a key that was granted what the token was.
func (s *site) dialPeer(t *testing.T) *client.Client {
	t.Helper()
	key := identity.New()
	if _, err := s.CLI(t, "grant", key.ID().String(), permission); err != nil {
		t.Fatal(err)
	}
	s.caller = key.ID().String()
	own, err := state.Folder(s.Folder).Identity()
	if err != nil {
		t.Fatal(err)
	}
	id, err := identity.Parse(own.DID)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2p.New(p2p.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	var addresses []string
	for _, c := range s.Routes(t).Carriers {
		if c.Kind == acts.P2PCarrier {
			addresses = append(addresses, c.Address+"/p2p/"+own.Peer)
		}
	}
	there, err := libp2p.AddrInfoFromString(addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Connect(t.Context(), *there); err != nil {
		t.Fatal(err)
	}
	return client.New(h.Caller(id, func() []string { return addresses }, rpc.CBOR), "e2e", "1")
}

// ofSite asks the operations as our own client does.
func ofSite(c agents.Site) speaker {
	return func(ctx context.Context, r request) (string, error) {
		var nobody agents.Principal
		var err error
		switch r.op {
		case "read":
			_, err = c.Read(ctx, nobody, agents.ReadRequest{Points: []string{r.point}})
		case "history":
			_, err = c.History(ctx, nobody, agents.HistoryRequest{Point: r.point})
		case "stop":
			_, err = c.Stop(ctx, nobody, agents.SiteRequest{})
		case "move":
			m := agents.MoveRequest{Output: r.point, Value: r.value}
			if r.length != 0 {
				m.For = &r.length
			}
			if r.key != "" {
				m.Key = &r.key
			}
			if r.within != 0 {
				m.Within = &r.within
			}
			_, err = c.Move(ctx, nobody, m)
		default:
			return "", fmt.Errorf("nobody asks for %s", r.op)
		}
		var needs *agents.ApprovalNeeded
		if errors.As(err, &needs) {
			return approval, err
		}
		if err != nil {
			return string(device.AsFault(err).Kind), err
		}
		return "", nil
	}
}

// speakHTTP asks in plain HTTP.
func speakHTTP(t *testing.T, s *site) speaker {
	return func(ctx context.Context, r request) (string, error) {
		verb, path, body := "GET", "", map[string]any{}
		switch r.op {
		case "read":
			path = "/api/points/" + r.point
		case "history":
			path = "/api/history?point=" + url.QueryEscape(r.point)
		case "stop":
			verb, path = "POST", "/api/stop"
		case "move":
			verb, path = "POST", "/api/outputs/"+r.point
			if !r.value.IsZero() {
				body["value"] = r.value
			}
			if r.length != 0 {
				body["for"] = r.length
			}
		default:
			return "", fmt.Errorf("nobody asks for %s", r.op)
		}
		text, err := json.Marshal(body)
		if err != nil {
			return "", err
		}
		if verb == "GET" {
			text = nil
		}
		return s.askHTTP(ctx, verb, path, text, r)
	}
}

// askHTTP sends a request with the terms of r in their headers, to an adapter that answers with
// Problems.
func (s *site) askHTTP(ctx context.Context, verb, path string, text []byte, r request) (fault string, err error) {
	q, err := http.NewRequestWithContext(ctx, verb, s.URL+path, bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	q.Header.Set("Authorization", "Bearer "+s.token)
	if r.key != "" {
		q.Header.Set("Idempotency-Key", strconv.Quote(r.key))
	}
	if r.within != 0 {
		q.Header.Set("Agentsite-Expires-In", fmt.Sprint(r.within))
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var problem struct{ Fault, Detail, Approval string }
	if err := json.NewDecoder(res.Body).Decode(&problem); err != nil && res.StatusCode >= 300 {
		return "", err
	}
	switch {
	case res.StatusCode < 300:
		return "", nil
	case problem.Approval != "":
		return approval, nil
	}
	return problem.Fault, errors.New(strings.TrimSpace(problem.Detail))
}
