package llm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	planTool     = "make_plan"
	maxPlanSteps = 8
)

// planInput is the schema of a plan.
const planInput = `{"type":"object","required":["steps"],"additionalProperties":false,"properties":{"steps":{"type":"array","maxItems":8,"items":{"type":"object","required":["tool"],"additionalProperties":false,"properties":{` +
	`"tool":{"type":"string","enum":[%s]},` +
	`"arguments":{"type":"object","description":"of the tool; {\"from\": 2} instead of a value is what step 2 extracted"},` +
	`"extract":{"type":"object","required":["question","kind"],"additionalProperties":false,"description":"one value that is read out of the result, for later steps","properties":{` +
	`"question":{"type":"string"},"kind":{"enum":["number","yes_no","choice"]},"min":{"type":"number"},"max":{"type":"number"},"options":{"type":"array","items":{"type":"string"}}}},` +
	`"only_if":{"type":"integer","description":"a step whose extracted yes_no has to be yes"}}}}}}`

// plan is calls that were fixed before anything of others was read. What others wrote can then
// only give the values that the plan leaves open, each of a kind that the plan names.
type plan struct {
	Steps []planStep `json:"steps"`
}

type planStep struct {
	Tool      string                    `json:"tool"`
	Arguments map[string]jsontext.Value `json:"arguments,omitzero"`
	Extract   *extract                  `json:"extract,omitzero"`
	OnlyIf    int                       `json:"only_if,omitzero"`
}

// extract is a value that is read out of a text.
type extract struct {
	Question string   `json:"question"`
	Kind     string   `json:"kind"`
	Min      *float64 `json:"min,omitzero"`
	Max      *float64 `json:"max,omitzero"`
	Options  []string `json:"options,omitzero"`
}

// plan has the model look at the site, and make a plan; then the plan is carried out, and the model
// tells the asker what came of it, without tools.
func (r *run) plan(ctx context.Context) (string, error) {
	r.messages[0].Text += "\n(Look at what you need first. Then, if anything is to be done or another program is to be asked, call " + planTool + " once with all steps: you can change nothing afterwards.)"
	looks := make([]tools.Tool, 1) // the plan, without which there is nothing to do, is left out last
	names := make([]string, len(r.offered))
	for i, t := range r.offered {
		names[i] = strconv.Quote(t.Name)
		if t.From == "" && t.Hints.ReadOnly && t.Name != agents.OpCapture.Tool() {
			looks = append(looks, t)
		}
	}
	looks[0] = tools.Tool{Name: planTool, Description: "Fixes everything that is done for the asker, in order.", Input: fmt.Appendf(nil, planInput, strings.Join(names, ","))}
	for turn := 1; turn < maxTurns; turn++ {
		a, err := r.ask(ctx, r.messages, looks)
		if err != nil || len(a.Calls) == 0 {
			return a.Text, err
		}
		r.messages = append(r.messages, chat.Message{Role: chat.Assistant, Text: a.Text, Calls: a.Calls})
		for i, c := range a.Calls {
			var said result
			switch {
			case i >= maxCalls:
				said.fault = device.Faultf(device.Busy, "not made: at most %d calls in one turn", maxCalls)
			case c.Name == planTool:
				p, err := r.readPlan(c)
				if err == nil {
					return r.carryOut(ctx, p)
				}
				said.fault = err
			case !slices.ContainsFunc(looks, func(t tools.Tool) bool { return t.Name == c.Name }):
				said.fault = device.Faultf(device.Invalid, "only %s uses %.40q", planTool, c.Name)
			default:
				said = r.call(ctx, c)
			}
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			r.messages = append(r.messages, chat.Message{Role: chat.Tool, CallID: c.ID, Text: said.text()})
		}
	}
	return "I found no plan in the turns that I have. Nothing was done.", nil
}

// readPlan checks a plan.
func (r *run) readPlan(c chat.Call) (p plan, err error) {
	if c.Broken != "" {
		return p, device.Faultf(device.Invalid, "the plan is no JSON object: %.200q", c.Broken)
	}
	if err := arguments(c.Arguments).Decode(&p); err != nil {
		return p, device.Faultf(device.Invalid, "the plan: %.300s", err.Error())
	}
	if len(p.Steps) == 0 || len(p.Steps) > maxPlanSteps {
		return p, device.Faultf(device.Invalid, "a plan has 1 to %d steps", maxPlanSteps)
	}
	// extracted reports whether a step before i extracts something, of a kind if that is named.
	extracted := func(i, from int, kind string) bool {
		return from >= 1 && from <= i && p.Steps[from-1].Extract != nil && (kind == "" || p.Steps[from-1].Extract.Kind == kind)
	}
	for i, s := range p.Steps {
		if !slices.ContainsFunc(r.offered, func(t tools.Tool) bool { return t.Name == s.Tool }) {
			return p, device.Faultf(device.Invalid, "step %d: there is no tool %.40q", i+1, s.Tool)
		}
		if s.OnlyIf != 0 && !extracted(i, s.OnlyIf, "yes_no") {
			return p, device.Faultf(device.Invalid, "step %d: only_if takes the number of a step before it that extracts a yes_no", i+1)
		}
		for name, v := range s.Arguments {
			if from, ok := reference(v); ok && !extracted(i, from, "") {
				return p, device.Faultf(device.Invalid, "step %d: %.40q takes what step %d extracts, and that extracts nothing before", i+1, name, from)
			}
		}
		if e := s.Extract; e != nil {
			if e.Question == "" || e.Kind == "choice" && (len(e.Options) == 0 || len(e.Options) > 16) || !slices.Contains([]string{"number", "yes_no", "choice"}, e.Kind) {
				return p, device.Faultf(device.Invalid, "step %d: extract takes a question and a kind: number (with min and max), yes_no, or choice with up to 16 options", i+1)
			}
			if e.Kind == "number" && (e.Min == nil || e.Max == nil || !(*e.Min <= *e.Max)) {
				return p, device.Faultf(device.Invalid, "step %d: a number is extracted between min and max", i+1)
			}
		}
	}
	return p, nil
}

// reference returns the step that an argument {"from": N} names.
func reference(v jsontext.Value) (step int, ok bool) {
	var ref struct {
		From *int `json:"from"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &ref, json.RejectUnknownMembers(true)) != nil || ref.From == nil {
		return 0, false
	}
	return *ref.From, true
}

// carryOut makes the steps of a plan, up to the first that fails.
func (r *run) carryOut(ctx context.Context, p plan) (string, error) {
	r.site.planned = r.site.foreign == ""
	values := make([]jsontext.Value, len(p.Steps))
	report := "This is what came of your plan. Tell the asker, briefly.\n"
	for i, s := range p.Steps {
		if s.OnlyIf != 0 && string(values[s.OnlyIf-1]) != "true" {
			report += fmt.Sprintf("%d. %s: left out, step %d said no\n", i+1, s.Tool, s.OnlyIf)
			continue
		}
		args := make(map[string]jsontext.Value, len(s.Arguments))
		missing := false
		for name, v := range s.Arguments {
			if from, ok := reference(v); ok {
				v = values[from-1]
				missing = missing || v == nil
			}
			args[name] = v
		}
		if missing {
			report += fmt.Sprintf("%d. %s: left out, a value was not found\n", i+1, s.Tool)
			continue
		}
		text, err := json.Marshal(args, json.Deterministic(true))
		if err != nil {
			return "", device.Faultf(device.Internal, "the plan: %w", err)
		}
		said := r.call(ctx, chat.Call{Name: s.Tool, Arguments: text})
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		report += fmt.Sprintf("%d. %s %s: %s\n", i+1, s.Tool, text, device.Clip(said.text(), 4<<10))
		if said.fault != nil {
			report += "The steps after it were not made.\n"
			break
		}
		if s.Extract != nil {
			if values[i], err = r.extract(ctx, *s.Extract, said.text()); err != nil {
				return "", err
			}
			report += fmt.Sprintf("   of that: %s %s\n", s.Extract.Question, values[i])
		}
	}
	a, err := r.ask(ctx, []chat.Message{{Role: chat.User, Text: r.task.Text}, {Role: chat.User, Text: report}}, nil)
	return a.Text, err
}

// extract has the model read one value out of a text, with no tools and nothing else in sight; nil
// where there is none.
func (r *run) extract(ctx context.Context, e extract, text string) (jsontext.Value, error) {
	want := "a number from " + number(e.Min) + " to " + number(e.Max)
	switch e.Kind {
	case "yes_no":
		want = "yes or no"
	case "choice":
		want = "one of: " + strings.Join(e.Options, ", ")
	}
	earlier := r.earlier
	r.earlier = nil
	a, err := r.ask(ctx, []chat.Message{{Role: chat.User, Text: "Answer one question about a text with nothing but " + want + ", or with unknown.\nQuestion: " + e.Question + "\nText: " + text}}, nil)
	r.earlier = earlier
	if err != nil {
		return nil, err
	}
	said := strings.Trim(strings.TrimSpace(a.Text), ".\"'`")
	switch e.Kind {
	case "yes_no":
		switch strings.ToLower(said) {
		case "yes":
			return jsontext.Value("true"), nil
		case "no":
			return jsontext.Value("false"), nil
		}
	case "choice":
		for _, option := range e.Options {
			if strings.EqualFold(option, said) {
				return json.Marshal(option)
			}
		}
	default:
		if n, err := strconv.ParseFloat(said, 64); err == nil && n >= *e.Min && n <= *e.Max {
			return json.Marshal(n)
		}
	}
	return nil, nil
}

func number(n *float64) string {
	if n == nil {
		return "any"
	}
	return strconv.FormatFloat(*n, 'g', -1, 64)
}
