package things

import (
	"context"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"

	"github.com/go-json-experiment/json"
)

// scheme is how the site's points are addressed as resources.
const scheme = "agentsite:///"

const mimeJSON = "application/json"

// URI is the resource of a point.
func URI(address string) string { return scheme + address }

func (a *Agent) Resources() []agents.Resource {
	var list []agents.Resource
	for _, p := range a.points {
		if slices.Contains(readable, p.Kind) && a.seen("read_points", p.Address) {
			list = append(list, agents.Resource{URI: URI(p.Address), Name: p.Address, Description: p.Description, MIME: mimeJSON})
		}
	}
	return list
}

func (a *Agent) Templates() []agents.Template {
	if len(a.addresses("read_points", readable...)) == 0 {
		return nil
	}
	return []agents.Template{{
		URITemplate: scheme + "{device}/{point}", Name: "point", Title: "A point's latest reading", MIME: mimeJSON,
	}}
}

// Reads is that of the tool that reads points: a resource is the same by another name.
func (a *Agent) Reads(uri string) agents.Ask {
	ask := about(strings.TrimPrefix(uri, scheme))
	ask.Tool = "read_points"
	return ask
}

func (a *Agent) ReadResource(_ context.Context, who agents.Principal, uri string) ([]agents.ResourceContent, error) {
	address, ours := strings.CutPrefix(uri, scheme)
	p, ok := a.byName[address]
	if !ours || !ok || !slices.Contains(readable, p.Kind) || !a.seen("read_points", address) {
		return nil, agents.ErrNotFound
	}
	text, err := json.Marshal(a.detail(who, p))
	if err != nil {
		return nil, err
	}
	return []agents.ResourceContent{{URI: uri, MIME: mimeJSON, Text: string(text)}}, nil
}

// outputDetail is a reading of an output with what it may do and is doing.
type outputDetail struct {
	reading
	Safe   value   `json:"safe"`
	Max    float64 `json:"max_seconds,omitzero"`
	Limits string  `json:"limits,omitzero"`
	Asks   string  `json:"confirm,omitzero"`
	Goal   value   `json:"going_to,omitzero"`
	Holder string  `json:"held_by,omitzero"`
	Left   float64 `json:"seconds_left,omitzero"`
	Rest   float64 `json:"rest_seconds,omitzero"`
	Needs  string  `json:"needs,omitzero"`
	Ended  string  `json:"returned_because,omitzero"`
}

// detail is all that there is to say of a point now.
func (a *Agent) detail(who agents.Principal, p point) any {
	all := a.site.Outputs.Status()
	i := slices.IndexFunc(all, func(s guard.Status) bool { return s.Output == p.Address })
	policy, err := a.site.Outputs.Policy(p.Address)
	if !p.Kind.Output() || i < 0 || err != nil {
		return a.read(p.Address)
	}
	s := all[i]
	return outputDetail{
		reading: a.read(p.Address), Safe: policy.Safe.Any(), Max: seconds(policy.Longest()), Limits: a.limits(policy), Asks: p.confirms(),
		Goal: goal(s), Holder: a.holder(who, s), Left: seconds(s.Left), Rest: seconds(s.Rest), Needs: a.lacks(s), Ended: s.Why,
	}
}

func (a *Agent) Prompts() []agents.Prompt {
	var prompts []agents.Prompt
	if a.sees(agents.Ask{Tool: "site_status", Effect: agents.Reads}) {
		prompts = append(prompts, agents.Prompt{
			Name: "check_up", Title: "Check up",
			Description: "Look the whole site over and say what needs attention.",
		})
	}
	if len(a.addresses("read_history", device.KindMeasurement)) > 0 {
		prompts = append(prompts, agents.Prompt{
			Name: "overnight", Title: "What happened overnight?",
			Description: "Tell the story of the last twelve hours of a measurement.",
			Arguments: []agents.Argument{{
				Name: "point", Description: "which measurement; all of them when left out",
			}},
		})
	}
	return prompts
}

func (a *Agent) Prompt(_ context.Context, _ agents.Principal, name string, args map[string]string, _ agents.Exchange) (agents.PromptResult, error) {
	i := slices.IndexFunc(a.Prompts(), func(p agents.Prompt) bool { return p.Name == name })
	if i < 0 {
		return agents.PromptResult{}, agents.ErrNotFound
	}
	text := "Call site_status and read_points. Say in a few plain sentences how the site is. " +
		"Name every device with a fault and what its owner can check, and every output that is away from its safe value and why that may be."
	if name == "overnight" {
		which := "every measurement that list_points shows"
		if p := args["point"]; p != "" {
			if !slices.Contains(a.addresses("read_history", device.KindMeasurement), p) {
				return agents.PromptResult{}, device.Faultf(device.Invalid, "point: there is no measurement %.60q here", p)
			}
			which = p
		}
		text = "Call read_history for " + which + " over the last 12 hours. Tell what happened overnight in a few plain sentences: " +
			"the lowest and highest value and when, how it went, and anything that looks unusual. Give units."
	}
	return agents.PromptResult{
		Description: a.Prompts()[i].Description,
		Messages:    []agents.Message{{Role: "user", Content: agents.Content{Text: text}}},
	}, nil
}

func (a *Agent) Complete(_ agents.Principal, ref agents.Reference, argument, prefix string) []string {
	var all []string
	switch {
	case ref.Prompt == "overnight" && argument == "point":
		all = a.addresses("read_history", device.KindMeasurement)
	case ref.URITemplate == scheme+"{device}/{point}" && (argument == "device" || argument == "point"):
		for _, p := range a.addresses("read_points", readable...) {
			d, name, _ := device.SplitAddress(p)
			if argument == "device" {
				name = d
			}
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	default:
		return nil
	}
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, prefix) })
}
