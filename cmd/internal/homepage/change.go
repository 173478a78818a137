package homepage

import (
	"context"
	"strings"

	"agentsite/device"
	"agentsite/node/acts"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/diff"
)

// What a person reads at a terminal before they confirm it; see Act.readable.
const maxChangeLines, maxChangeBytes = 400, 32 << 10

// Change describes how a configuration is replaced.
type Change struct {
	Lines  []string // a unified diff without its head
	Digest string   // of the new text
	Rest   []byte   // the parameters without the text, JSON
}

// change compares the text that the parameters have with the one that the site has now.
func (s *site) change(ctx context.Context, params []byte) (*Change, error) {
	var wanted acts.NewConfiguration
	var rest map[string]jsontext.Value
	err := json.Unmarshal(params, &wanted)
	if err == nil {
		err = json.Unmarshal(params, &rest)
	}
	if err != nil {
		return nil, device.Faultf(device.Invalid, "params: %w", err)
	}
	now, err := read[acts.Configuration](ctx, s, string(acts.ConfigurationAct), acts.None{}, true)
	if err != nil {
		return nil, err
	}
	if wanted.Digest != acts.Digest([]byte(now.Text)) {
		return nil, device.Faultf(device.Invalid,
			"digest: it is not that of the configuration as it is now: ask for it again")
	}
	c := &Change{Digest: acts.Digest([]byte(wanted.Text))}
	delete(rest, "text")
	if c.Rest, err = json.Marshal(rest, json.Deterministic(true)); err != nil {
		return nil, err
	}
	lines := string(diff.Diff("", []byte(now.Text), "", []byte(wanted.Text)))
	if at := strings.Index(lines, "@@"); at >= 0 {
		c.Lines = strings.Split(strings.TrimSuffix(lines[at:], "\n"), "\n")
	}
	if len(c.Lines) > maxChangeLines || len(lines) > maxChangeBytes {
		return nil, device.Faultf(device.Invalid,
			"the change is too long to read it at the terminal (%d lines, %d bytes; %d and %d at most): "+
				"make it in parts, or edit the file on the site's machine",
			len(c.Lines), len(lines), maxChangeLines, maxChangeBytes)
	}
	return c, nil
}
