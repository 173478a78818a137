// Package client calls agents elsewhere by the Agent Network Protocol. It reads an agent's
// description, verifies the agent's identity, and calls its methods by JSON-RPC with signed
// requests. It fetches from and calls only the host of the URL that the owner configured.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/transport/anp/did"
	"agentsite/transport/fault"
	"agentsite/transport/httpsig"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxDescription = 64 << 10
	maxInterface   = 256 << 10
	maxMethods     = 256
	maxParams      = 32
	// callTimeout bounds a call. It is below the time for which a task is watched.
	callTimeout = 25 * time.Second
)

// Options configure a Client.
type Options struct {
	URL    string       // of the agent description; see CheckURL
	Domain string       // of this site, whose did:wba it calls itself; "" for the did:key
	Key    identity.Key // of this site
	Now    func() time.Time
	HTTP   *http.Client // nil for a client that dials public addresses and that of the URL
}

// Client is an agent elsewhere. Its methods are safe for concurrent use.
type Client struct {
	Options
	host    string // and port, as in the URL
	scheme  string
	keyID   string
	resolve *http.Client
}

// CheckURL accepts the https URL of an agent description, or an http URL at an address of this
// machine.
func CheckURL(text string) error {
	return outbound.CheckURL(text, "an agent description", "https://hotel.example.com/agents/ad.json")
}

// New returns a client. It dials nothing.
func New(o Options) (*Client, error) {
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{Options: o, host: u.Host, scheme: u.Scheme, keyID: o.Key.ID().String(), resolve: did.NewClient()}
	if o.Domain != "" {
		c.keyID = did.KeyID(o.Domain)
	}
	if c.HTTP == nil {
		c.HTTP = outbound.Client(callTimeout, u.Hostname())
	} else {
		c.resolve = c.HTTP
	}
	return c, nil
}

// Agent is an agent's description of itself.
type Agent struct {
	Name, Description string
	DID               string // verified; "" where it names none
	Methods           []Method
}

// Method is a method that can be called.
type Method struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Summary     string  `json:"summary"`
	Params      []Param `json:"params"`

	url string
}

// Param is a parameter.
type Param struct {
	Name     string         `json:"name"`
	Required bool           `json:"required"`
	Schema   jsontext.Value `json:"schema"`
}

// description is the part of an agent description that is read here.
type description struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	DID         string         `json:"did"`
	Proof       jsontext.Value `json:"proof"`
	Interfaces  []struct {
		Type     string         `json:"type"`
		Protocol string         `json:"protocol"`
		URL      string         `json:"url"`
		Content  jsontext.Value `json:"content"`
	} `json:"interfaces"`
}

type server struct {
	URL string `json:"url"`
}

// Describe fetches the description with the interfaces that it names, and verifies its did:wba and
// its proof where it has them.
func (c *Client) Describe(ctx context.Context) (*Agent, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := c.get(ctx, c.URL, maxDescription)
	if err != nil {
		return nil, err
	}
	var d description
	if err := json.Unmarshal(text, &d); err != nil || d.Name == "" {
		return nil, errors.New("its agent description is not one of ANP")
	}
	if err := c.verify(ctx, &d, text); err != nil {
		return nil, err
	}
	a := &Agent{Name: d.Name, Description: d.Description, DID: d.DID}
	for _, i := range d.Interfaces {
		if i.Type != "StructuredInterface" || !strings.EqualFold(i.Protocol, "openrpc") {
			continue
		}
		doc := []byte(i.Content)
		if len(doc) == 0 {
			if doc, err = c.get(ctx, i.URL, maxInterface); err != nil {
				return nil, err
			}
		}
		if err := c.addMethods(a, doc); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// get fetches a document from the agent's own host, in the name of this site.
func (c *Client) get(ctx context.Context, at string, most int64) ([]byte, error) {
	if err := c.same(at); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if err := httpsig.Sign(r, nil, c.keyID, c.Key.Private(), c.Now()); err != nil {
		return nil, err
	}
	return outbound.Do(c.HTTP, r, most)
}

// same refuses a URL at another host than that of the owner's URL.
func (c *Client) same(at string) error {
	u, err := url.Parse(at)
	if err != nil || u.Host != c.host || u.Scheme != c.scheme || u.User != nil {
		return fmt.Errorf("it leads to %.80q, and only %s was named by the owner", at, c.host)
	}
	return nil
}

// verify checks the did:wba of a description: it is of the description's own host, and its document
// names the description, where it names one. A proof is by a key of it.
func (c *Client) verify(ctx context.Context, d *description, text []byte) error {
	if d.DID == "" {
		if len(d.Proof) > 0 {
			return errors.New("its description has a proof, and no did that it could be by")
		}
		return nil
	}
	if err := did.Check(d.DID); err != nil {
		return err
	}
	if did.HostOf(d.DID) != c.host || c.scheme != "https" {
		return fmt.Errorf("its description says that it is %.80s, which is not of %s", d.DID, c.host)
	}
	doc, err := did.Fetch(ctx, c.resolve, d.DID)
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(slices.Clone(doc.Services), func(s did.Service) bool { return s.Type != "AgentDescription" })
	if len(names) > 0 && !slices.ContainsFunc(names, func(s did.Service) bool { return s.Endpoint == c.URL }) {
		return fmt.Errorf("the document of %s names another description", d.DID)
	}
	if len(d.Proof) > 0 {
		return doc.CheckProof(text)
	}
	return nil
}

// addMethods adds those of an OpenRPC document. A method without a server of its own is called at
// that of the document.
func (c *Client) addMethods(a *Agent, text []byte) error {
	var doc struct {
		Servers []server `json:"servers"`
		Methods []struct {
			Method
			Servers []server `json:"servers"`
		} `json:"methods"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return errors.New("its interface is not a document of OpenRPC")
	}
	for _, m := range doc.Methods {
		servers := append(m.Servers, doc.Servers...)
		if len(servers) == 0 || m.Name == "" || len(m.Params) > maxParams || c.same(servers[0].URL) != nil {
			continue // a URL elsewhere was not named
		}
		if len(a.Methods) == maxMethods {
			return fmt.Errorf("it has more than %d methods", maxMethods)
		}
		m.url = servers[0].URL
		a.Methods = append(a.Methods, m.Method)
	}
	return nil
}

// Call calls a method with its parameters by their names. Errors are faults: Offline where nothing
// was sent, and UnknownOutcome where no answer came.
func (c *Client) Call(ctx context.Context, m *Method, params jsontext.Value, t agents.Terms) (jsontext.Value, error) {
	via := append(append([]string(nil), t.Via...), c.Key.ID().String())
	if len(via) > agents.MaxVia {
		return nil, device.Faultf(device.Denied, "this came through %d sites and agents, which is the maximum", agents.MaxVia)
	}
	if len(params) == 0 {
		params = jsontext.Value("{}")
	}
	call := fault.Call{URL: m.url, Method: m.Name, Params: params, Timeout: callTimeout}
	return call.Send(ctx, c.HTTP, func(r *http.Request, body []byte) error {
		r.Header.Set("Agentsite-Via", strings.Join(via, ","))
		if t.Key != nil {
			r.Header.Set("Idempotency-Key", *t.Key)
		}
		return httpsig.Sign(r, body, c.keyID, c.Key.Private(), c.Now())
	})
}
