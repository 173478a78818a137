package anp

import (
	"context"
	"maps"
	"slices"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/transport/adapter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// openRPC is a document of OpenRPC 1.3.2.
type openRPC struct {
	OpenRPC string         `json:"openrpc"`
	Info    info           `json:"info"`
	Servers []rpcServer    `json:"servers"`
	Methods []methodObject `json:"methods"`
}

type info struct {
	Title           string `json:"title"`
	Version         string `json:"version"`
	Description     string `json:"description"`
	ProtocolType    string `json:"x-anp-protocol-type"`
	ProtocolVersion string `json:"x-anp-protocol-version"`
}

type rpcServer struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type methodObject struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Structure   string      `json:"paramStructure"`
	Params      []parameter `json:"params"`
	Result      parameter   `json:"result"`
}

// parameter is a content descriptor.
type parameter struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	Required    bool           `json:"required,omitzero"`
	Schema      jsontext.Value `json:"schema"`
}

var (
	anySchema    = jsontext.Value("{}")
	objectSchema = jsontext.Value(`{"type":"object"}`)

	negotiateMeta = jsontext.Value(`{"type":"object","required":["profile"],"properties":{"profile":{"const":"` + negotiationProfile + `"},` +
		`"security_profile":{"const":"` + transportProtected + `"},"content_type":{"const":"` + jsonType + `"}}}`)
	negotiateBody = jsontext.Value(`{"type":"object","properties":{"intent":{"type":"object","properties":{"name":{"type":"string"},"intentTags":{"type":"array","items":{"type":"string"}}}},` +
		`"requiredCapabilities":{"type":"array","items":{"type":"string"}},"constraints":{"type":"object","properties":{"requiresHumanAuthorization":{"type":"boolean"}}}}}`)
)

// meta is the parameter of every tool beside its arguments.
var meta = parameter{Name: "_meta", Description: "agentsite/idempotency-key, agentsite/expires-in, agentsite/via, agentsite/approval", Schema: objectSchema}

// document describes the methods that the reader may call: only moves that an owner approves, or
// all other methods. A stranger reads how to negotiate.
func (a server) document(ctx context.Context, c *adapter.Call, approved bool) (any, error) {
	d := openRPC{
		OpenRPC: "1.3.2",
		Info:    info{a.title(c.Who), "1.0.0", "The operations of a site with sensors and outputs, as far as you may call them.", "ANP", "1.0.0"},
		Servers: []rpcServer{{"site", c.Base() + "/anp/rpc"}},
		Methods: []methodObject{},
	}
	if c.Who != (agents.Principal{}) {
		all, err := a.Tools.Tools(ctx, c.Who)
		if err != nil {
			return nil, err
		}
		outputs, err := a.confirmed(ctx, c.Who)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			m, ok, err := methodOf(t, outputs, approved)
			if err != nil {
				return nil, err
			}
			if ok {
				d.Methods = append(d.Methods, m)
			}
		}
	}
	if !approved {
		result := parameter{Name: "result", Schema: objectSchema}
		d.Methods = append(d.Methods,
			methodObject{capabilitiesMethod, "What this endpoint supports.", "by-name", []parameter{{Name: "meta", Schema: objectSchema}, {Name: "body", Schema: objectSchema}}, result},
			methodObject{negotiateMethod, "Finds the operation for an intent (ANP-06).", "by-name",
				[]parameter{{Name: "meta", Required: true, Schema: negotiateMeta}, {Name: "body", Required: true, Schema: negotiateBody}}, result})
	}
	return d, nil
}

// methodOf describes a tool, with those of its outputs alone that an owner approves or with the
// others. ok is false where none is left.
func methodOf(t tools.Tool, outputs []string, approved bool) (m methodObject, ok bool, err error) {
	var in struct {
		Properties map[string]jsontext.Value `json:"properties"`
		Required   []string                  `json:"required"`
	}
	if err := json.Unmarshal(t.Input, &in); err != nil {
		return m, false, err
	}
	moves := t.Name == tools.SwitchOutput || t.Name == tools.SetLevel
	if approved && !moves {
		return m, false, nil
	}
	m = methodObject{Name: t.Name, Description: t.Description, Structure: "by-name", Params: []parameter{}, Result: parameter{Name: "result", Schema: anySchema}}
	if t.Output != nil {
		m.Result.Schema = t.Output
	}
	for _, name := range slices.Sorted(maps.Keys(in.Properties)) {
		p := parameter{Name: name, Required: slices.Contains(in.Required, name), Schema: in.Properties[name]}
		if moves && name == "output" {
			if p.Schema, ok, err = without(p.Schema, func(output string) bool { return slices.Contains(outputs, output) != approved }); err != nil || !ok {
				return m, false, err
			}
		}
		m.Params = append(m.Params, p)
	}
	slices.SortStableFunc(m.Params, func(a, b parameter) int { // optional ones come last, as OpenRPC asks
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	m.Params = append(m.Params, meta)
	return m, true, nil
}

// without returns a schema whose enum lacks some names, and whether any are left.
func without(schema jsontext.Value, unwanted func(string) bool) (jsontext.Value, bool, error) {
	var members map[string]jsontext.Value
	var names []string
	err := json.Unmarshal(schema, &members)
	if err == nil {
		err = json.Unmarshal(members["enum"], &names)
	}
	if err != nil {
		return nil, false, err
	}
	if names = slices.DeleteFunc(names, unwanted); len(names) == 0 {
		return nil, false, nil
	}
	if members["enum"], err = json.Marshal(names); err != nil {
		return nil, false, err
	}
	out, err := json.Marshal(members, json.Deterministic(true))
	return out, true, err
}
