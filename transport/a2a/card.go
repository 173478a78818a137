package a2a

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/adapter"
)

// card is an AgentCard of 1.0. No list and no object in it is empty: verifiers disagree whether
// those are signed. It has no securityRequirements, of which the protocol's own libraries for Go
// and JavaScript read two different forms: an answer of 401 tells the same.
type card struct {
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	Interfaces   []agentInterface  `json:"supportedInterfaces"`
	Version      string            `json:"version"`
	Capabilities capabilities      `json:"capabilities"`
	Schemes      map[string]scheme `json:"securitySchemes"`
	InputModes   []string          `json:"defaultInputModes"`
	OutputModes  []string          `json:"defaultOutputModes"`
	Skills       []skill           `json:"skills"`

	legacyCard
	Signatures []signature `json:"signatures,omitzero"`
}

// legacyCard has the members of a card that only 0.3 has.
type legacyCard struct {
	URL       string                `json:"url,omitzero"`
	Protocol  string                `json:"protocolVersion,omitzero"`
	Transport string                `json:"preferredTransport,omitzero"`
	Further   []legacyInterface     `json:"additionalInterfaces,omitzero"`
	Extended  bool                  `json:"supportsAuthenticatedExtendedCard,omitzero"`
	Security  []map[string][]string `json:"security,omitzero"`
}

type legacyInterface struct {
	URL       string `json:"url"`
	Transport string `json:"transport"`
}

type agentInterface struct {
	URL     string `json:"url"`
	Binding string `json:"protocolBinding"`
	Version string `json:"protocolVersion"`
}

type capabilities struct {
	Streaming  bool        `json:"streaming"`
	Push       bool        `json:"pushNotifications"`
	Extended   bool        `json:"extendedAgentCard"`
	Extensions []extension `json:"extensions,omitzero"`
}

type extension struct {
	URI         string            `json:"uri"`
	Description string            `json:"description"`
	Params      map[string]string `json:"params"`
}

type scheme struct {
	Type   string      `json:"type,omitzero"`   // 0.3, as the next
	Scheme string      `json:"scheme,omitzero"` // of HTTP
	HTTP   *httpScheme `json:"httpAuthSecurityScheme,omitzero"`
	TLS    *tlsScheme  `json:"mtlsSecurityScheme,omitzero"`
}

type httpScheme struct {
	Scheme      string `json:"scheme"`
	Description string `json:"description"`
}

type tlsScheme struct {
	Description string `json:"description"`
}

type skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitzero"`
	InputModes  []string `json:"inputModes,omitzero"`
}

// signature is a JSON Web Signature of a card without its signatures (section 8.4).
type signature struct {
	Protected string `json:"protected"`
	Signature string `json:"signature"`
}

const (
	jsonMode = "application/json"
	textMode = "text/plain"

	// Extensions of this site's cards; the parameters are texts.
	agentsExtension = "urn:agentsite:a2a:agents:1" // names of hosted agents, and the URLs of their cards
	termsExtension  = "urn:agentsite:a2a:terms:1"  // what repeats a message
	skillsExtension = "urn:agentsite:a2a:skills:1" // names of skills, and the JSON Schemas of their arguments
)

// newCard returns a card of the agent at that URL.
func (s *server) newCard(url string) *card {
	return &card{
		Interfaces: []agentInterface{
			{url, "JSONRPC", "1.0"}, {url, "HTTP+JSON", "1.0"}, {url, "JSONRPC", "0.3"}, {url, "HTTP+JSON", "0.3"},
		},
		// A stranger's card has no more than this.
		Name: "agentsite", Version: "1",
		Description: "An agentsite. Holders of a token or a key of it see what it offers them.",
		Capabilities: capabilities{Streaming: true, Push: len(s.PushHosts) > 0, Extended: true, Extensions: []extension{{
			termsExtension,
			"a message that is sent again with its messageId, or with the idempotency key in its metadata, is the same",
			map[string]string{"key": "messageId"},
		}}},
		Schemes: map[string]scheme{
			"bearer": {HTTP: &httpScheme{"Bearer", "a token that the owner made"}},
			"mtls":   {TLS: &tlsScheme{"a client certificate of a key that the owner granted something"}},
		},
		InputModes: []string{jsonMode, textMode}, OutputModes: []string{jsonMode, textMode},
		Skills: []skill{{
			ID: "offer", Name: "offer", Tags: []string{"agentsite"},
			Description: "Shows holders of a token or a key what they may use: ask for the extended card.",
		}},
	}
}

// serveCard serves the card of an agent, as its reader wants it: of 1.0 if the reader names that
// version, otherwise of both versions in one.
func (s *server) serveCard(ctx context.Context, a *adapter.Call) (any, error) {
	a.Writer.Header().Add("Vary", "A2A-Version")
	f, err := formOf(a.Request.Header.Get("A2A-Version"))
	return s.card(ctx, a.Who, a.Base(), a.Request.PathValue("agent"), err != nil || f.legacy)
}

// extendedCard returns the card with all that the caller may use, as serveCard does for a known
// caller.
func (s *server) extendedCard(ctx context.Context, c *call) (any, error) {
	return s.card(ctx, c.who, c.base, c.agent, c.form.legacy)
}

// card returns the signed card of a hosted agent, or of the things if agent is "". A stranger's card
// says only that a site is there.
func (s *server) card(
	ctx context.Context, who agents.Principal, base, agent string, legacy bool,
) (out *card, err error) {
	switch {
	case agent != "":
		out, err = s.hostedCard(ctx, who, base, agent)
	case who.ID == "":
		out = s.newCard(base + thingsBase)
	default:
		out, err = s.thingsCard(ctx, who, base)
	}
	if err != nil {
		return nil, err
	}
	if legacy {
		out.addLegacy()
	}
	return out, s.sign(out)
}

func (s *server) thingsCard(ctx context.Context, who agents.Principal, base string) (*card, error) {
	offer, err := s.Node.Offer(ctx, who)
	if err != nil {
		return nil, err
	}
	out := s.newCard(base + thingsBase)
	out.Name, out.Version = s.Name, s.Version
	out.Description = "Sensors and outputs of a board. Send a message with one data part, an operation; " +
		"texts are answered with how that is done."
	if skills := skillsOf(offer); len(skills) > 0 {
		out.Skills = skills
	}
	if s.Tasks == nil {
		return out, nil
	}
	hosted, err := s.Tasks.Agents(ctx, who)
	if err != nil || len(hosted) == 0 {
		return out, err
	}
	cards := make(map[string]string, len(hosted))
	for _, agent := range hosted {
		cards[agent.Name] = base + agentsBase + agent.Name + cardPath
	}
	out.Capabilities.Extensions = append(out.Capabilities.Extensions,
		extension{agentsExtension, "the cards of the agents that take tasks", cards})
	return out, nil
}

func (s *server) hostedCard(ctx context.Context, who agents.Principal, base, name string) (*card, error) {
	hosted, err := s.Tasks.Agents(ctx, who)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(hosted, func(a task.Agent) bool { return a.Name == name })
	if i < 0 {
		return nil, errNoAgent
	}
	agent := hosted[i]
	out := s.newCard(base + agentsBase + name)
	out.Name, out.Version = name, s.Version
	out.Description = cmp.Or(agent.Description, "An agent of this site that takes tasks.")
	schemas := make(map[string]string)
	out.Skills = nil
	for _, k := range agent.Skills {
		to := skill{ID: k.ID, Name: k.ID, Description: cmp.Or(k.Description, k.ID), Tags: k.Tags}
		if len(to.Tags) == 0 {
			to.Tags = []string{"task"}
		}
		if k.Input != nil {
			schemas[k.ID] = string(k.Input)
		} else {
			to.Examples = []string{fmt.Sprintf(`{"skill":%q}`, k.ID)}
		}
		out.Skills = append(out.Skills, to)
	}
	if len(schemas) > 0 {
		out.Capabilities.Extensions = append(out.Capabilities.Extensions,
			extension{skillsExtension, `JSON Schemas of "arguments" beside "skill" in a data part`, schemas})
	}
	return out, nil
}

// operationNames are the operations in the order of their skills.
func operationNames() (names []string) {
	for _, o := range op.Operations {
		names = append(names, o.Name)
	}
	return names
}

// skillsOf returns the operations that an offer has.
func skillsOf(offer *agents.Offer) (all []skill) {
	for _, o := range op.Operations {
		points, offered := o.Offered(offer)
		if !offered {
			continue
		}
		members := []string{fmt.Sprintf(`"operation":%q`, o.Name)}
		switch {
		case len(points) == 0:
		case o == op.Read:
			members = append(members, fmt.Sprintf(`%q:[%q]`, o.Field, points[0]))
		default:
			members = append(members, fmt.Sprintf(`%q:%q`, o.Field, points[0]))
		}
		switch {
		case o == op.Move && len(offer.Switch) > 0:
			members = append(members, `"for":60,"value":true`)
		case o == op.Move && len(offer.Level) > 0:
			members = append(members, `"for":60,"value":10`)
		case o.Example != "":
			members = append(members, o.Example)
		}
		all = append(all, skill{
			ID: o.Name, Name: o.Name, Description: o.Description, Tags: []string{"site", o.Name},
			Examples: []string{"{" + strings.Join(members, ",") + "}"}, InputModes: []string{jsonMode},
		})
	}
	return all
}

// usage returns the text that tells a caller how to ask the things.
func (h *things) usage(ctx context.Context, who agents.Principal) (string, error) {
	offer, err := h.node.Offer(ctx, who)
	if err != nil {
		return "", err
	}
	skills := skillsOf(offer)
	if len(skills) == 0 {
		return "", device.Faultf(device.Denied, "you may use nothing of this site")
	}
	var b strings.Builder
	b.WriteString("This agent reads no texts. Send a message with one data part, such as:")
	for _, k := range skills {
		b.WriteString("\n" + k.Examples[0])
	}
	return b.String(), nil
}

// addLegacy adds the members that readers of 0.3 need.
func (c *card) addLegacy() {
	c.legacyCard = legacyCard{
		URL: c.Interfaces[0].URL, Protocol: "0.3.0", Transport: "JSONRPC", Extended: true,
		Further:  []legacyInterface{{c.Interfaces[0].URL, "JSONRPC"}, {c.Interfaces[0].URL, "HTTP+JSON"}},
		Security: []map[string][]string{{"bearer": {}}, {"mtls": {}}},
	}
	for name, s := range c.Schemes {
		if s.Type = "mutualTLS"; s.HTTP != nil {
			s.Type, s.Scheme = "http", "Bearer"
		}
		c.Schemes[name] = s
	}
}

// sign signs a card with the site's key. A card with the members of 0.3 has two signatures. Readers
// of 1.0 that drop those members verify the first; readers that keep the card unchanged verify the
// second.
func (s *server) sign(c *card) error {
	plain := *c
	plain.legacyCard = legacyCard{}
	plain.Schemes = make(map[string]scheme, len(c.Schemes))
	for name, of := range c.Schemes {
		of.Type, of.Scheme = "", ""
		plain.Schemes[name] = of
	}
	signed := []*card{&plain}
	if c.URL != "" {
		signed = append(signed, c)
	}
	var all []signature
	for _, of := range signed {
		one, err := s.signatureOf(of)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	c.Signatures = all
	return nil
}

func (s *server) signatureOf(c *card) (signature, error) {
	text, err := encode(c)
	if err == nil {
		err = text.Canonicalize() // RFC 8785
	}
	if err != nil {
		return signature{}, err
	}
	header, err := encode(map[string]string{"alg": "EdDSA", "kid": s.Key.ID().String(), "typ": "JOSE"})
	if err != nil {
		return signature{}, err
	}
	b64 := base64.RawURLEncoding
	protected := b64.EncodeToString(header)
	sig := ed25519.Sign(s.Key.Private(), []byte(protected+"."+b64.EncodeToString(text)))
	return signature{protected, b64.EncodeToString(sig)}, nil
}
