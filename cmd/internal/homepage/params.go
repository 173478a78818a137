package homepage

import (
	"cmp"

	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	unconfirmedKey  = "agentsite/unconfirmed"
	subscriptionKey = "io.modelcontextprotocol/subscriptionId"
)

// params are the parameters of a request.
type params struct {
	Name   string `json:"name"`
	URI    string `json:"uri"`
	TaskID string `json:"taskId"`

	Meta jsontext.Value `json:"_meta"`

	text []byte // all of them, as JSON
}

func readParams(raw rpc.Raw) (p params, err error) {
	p.text = []byte("{}")
	if !raw.IsZero() {
		if p.text, err = raw.JSONText(); err != nil {
			return p, err
		}
	}
	return p, json.Unmarshal(p.text, &p)
}

// subject is what carriers mirror beside a request.
func (p params) subject() string { return cmp.Or(p.Name, p.URI, p.TaskID) }

// setUnconfirmed says that no person confirmed the call: the page's word is not its owner's.
func (p *params) setUnconfirmed() (err error) {
	p.text, err = withMeta(p.text, unconfirmedKey, jsontext.Value("true"))
	return err
}

// retag replaces the ID of a subscription in what a site tells of it, and returns its size in bytes: 0 for
// what is not of that subscription.
func retag(raw rpc.Raw, from, to rpc.ID) (tagged rpc.Raw, size int) {
	text, err := raw.JSONText()
	if err != nil {
		return raw, 0
	}
	var told struct {
		Meta struct {
			Subscription rpc.ID `json:"io.modelcontextprotocol/subscriptionId"`
		} `json:"_meta"`
	}
	if json.Unmarshal(text, &told) != nil || told.Meta.Subscription != from {
		return raw, 0
	}
	id, err := json.Marshal(to)
	if err == nil {
		text, err = withMeta(text, subscriptionKey, id)
	}
	if err != nil {
		return raw, 0
	}
	return rpc.RawJSON(text), len(text)
}

// withMeta returns an object with a member of its _meta replaced.
func withMeta(object []byte, key string, value jsontext.Value) ([]byte, error) {
	var all, meta map[string]jsontext.Value
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	if old, ok := all["_meta"]; ok {
		if err := json.Unmarshal(old, &meta); err != nil {
			return nil, err
		}
	}
	if all == nil {
		all = make(map[string]jsontext.Value)
	}
	if meta == nil {
		meta = make(map[string]jsontext.Value)
	}
	meta[key] = value
	var err error
	if all["_meta"], err = json.Marshal(meta, json.Deterministic(true)); err != nil {
		return nil, err
	}
	return json.Marshal(all, json.Deterministic(true))
}
