package llm

import (
	"context"
	"fmt"
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

// planStep is a call that was fixed before anything of others was read. What others wrote can then
// only give the values that the plan leaves open, each of a kind that the plan names.
type planStep struct {
	Tool      string                    `json:"tool"`
	Arguments map[string]jsontext.Value `json:"arguments"`
	Extract   *extract                  `json:"extract"`
	OnlyIf    int                       `json:"only_if"`
}

// extract is a value that is read out of a text.
type extract struct {
	Question string   `json:"question"`
	Kind     string   `json:"kind"`
	Min      *float64 `json:"min"`
	Max      *float64 `json:"max"`
	Options  []string `json:"options"`
}

// offerPlan has the model look at the site, and make a plan. When that is carried out, the model tells
// the asker what came of it, without tools.
func (r *run) offerPlan() {
	r.messages[0].Text += "\n(Look at what you need first. Then, if anything is to be done or another program is to be asked, call " + planTool + " once with all steps: you can change nothing afterwards.)"
	plan := &tools.Tool{Name: planTool, Description: "Fixes everything that is done for the asker, in order."}
	r.offered = []*tools.Tool{plan} // without which there is nothing to do: it is left out last
	names := ""
	for _, t := range r.all {
		names += `,"` + t.Name + `"`
		if t.From == "" && t.Hints.ReadOnly && t.Name != agents.OpCapture.Tool() {
			r.offered = append(r.offered, t)
		}
	}
	plan.Input = fmt.Appendf(nil, planInput, strings.TrimPrefix(names, ","))
}

// readPlan checks a plan.
func (r *run) readPlan(c *chat.Call) ([]planStep, error) {
	if c.Broken != "" {
		return nil, device.Faultf(device.Invalid, "the plan is no JSON object: %.200q", c.Broken)
	}
	var plan struct {
		Steps []planStep `json:"steps"`
	}
	if err := (arguments{r.agent.world, c.Arguments}).Decode(&plan); err != nil {
		return nil, device.Faultf(device.Invalid, "the plan: %.300s", err.Error())
	}
	if len(plan.Steps) == 0 || len(plan.Steps) > maxPlanSteps {
		return nil, device.Faultf(device.Invalid, "a plan has 1 to %d steps", maxPlanSteps)
	}
	for i := range plan.Steps {
		if wrong := r.checkStep(plan.Steps[:i], &plan.Steps[i]); wrong != "" {
			return nil, device.Faultf(device.Invalid, "step %d: %s", i+1, wrong)
		}
	}
	return plan.Steps, nil
}

// checkStep returns what is wrong with a step behind others; "" for nothing.
func (r *run) checkStep(before []planStep, s *planStep) string {
	extracts := func(step int) string { // its kind
		if step < 1 || step > len(before) || before[step-1].Extract == nil {
			return ""
		}
		return before[step-1].Extract.Kind
	}
	if find(r.all, s.Tool) == nil {
		return fmt.Sprintf("there is no tool %.40q", s.Tool)
	}
	if s.OnlyIf != 0 && extracts(s.OnlyIf) != "yes_no" {
		return "only_if takes the number of a step before it that extracts a yes_no"
	}
	for name, v := range s.Arguments {
		if from, ok := reference(v); ok && extracts(from) == "" {
			return fmt.Sprintf("%.40q takes what step %d extracts, and that extracts nothing before", name, from)
		}
	}
	if e := s.Extract; e != nil {
		good := e.Kind == "yes_no"
		switch e.Kind {
		case "number":
			good = e.Min != nil && e.Max != nil && *e.Min <= *e.Max
		case "choice":
			good = len(e.Options) > 0 && len(e.Options) <= 16
		}
		if !good || e.Question == "" {
			return "extract takes a question and a kind: number between min and max, yes_no, or choice with up to 16 options"
		}
	}
	return ""
}

// reference returns the step that an argument {"from": N} names.
func reference(v jsontext.Value) (step int, ok bool) {
	f := chat.Fields(v)
	step, err := strconv.Atoi(string(f["from"]))
	return step, err == nil && len(f) == 1
}

// carryOut makes the steps of a plan, up to the first that fails.
func (r *run) carryOut(ctx context.Context, steps []planStep) (string, error) {
	r.offered, r.site.planned = r.all, r.site.foreign == ""
	values := make([]jsontext.Value, len(steps))
	report := "This is what came of your plan. Tell the asker, briefly.\n"
	for i := range steps {
		s := &steps[i]
		args, left := s.fill(values)
		said, ok := "left out, "+left, true
		if left == "" {
			said, ok = r.call(ctx, &chat.Call{Name: s.Tool, Arguments: args})
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		report += fmt.Sprintf("%d. %s %s: %s\n", i+1, s.Tool, args, device.Clip(said, 4<<10))
		if !ok {
			report += "The steps after it were not made.\n"
			break
		}
		if left == "" && s.Extract != nil {
			var err error
			if values[i], err = r.extract(ctx, s.Extract, said); err != nil {
				return "", err
			}
			report += "   of that: " + s.Extract.Question + " " + string(values[i]) + "\n"
		}
	}
	a, err := r.ask(ctx, []chat.Message{{Role: chat.User, Text: r.task.Text}, {Role: chat.User, Text: report}}, nil)
	return a.Text, err
}

// fill returns the arguments of a step with the values that steps before it extracted, or why it is
// left out.
func (s *planStep) fill(values []jsontext.Value) (args jsontext.Value, left string) {
	if s.OnlyIf != 0 && string(values[s.OnlyIf-1]) != "true" {
		return nil, "a step before it did not say yes"
	}
	for name, v := range s.Arguments {
		if from, ok := reference(v); ok {
			if values[from-1] == nil {
				return nil, "a value was not found"
			}
			s.Arguments[name] = values[from-1]
		}
	}
	args, err := json.Marshal(s.Arguments, json.Deterministic(true))
	if err != nil {
		return nil, "its arguments are no JSON"
	}
	return args, ""
}

// extract has the model read one value out of a text, with no tools and nothing else in sight; nil
// where there is none.
func (r *run) extract(ctx context.Context, e *extract, text string) (jsontext.Value, error) {
	options, want := e.Options, ""
	switch e.Kind {
	case "number":
		options, want = nil, fmt.Sprintf("a number from %g to %g", *e.Min, *e.Max)
	case "yes_no":
		options = []string{"yes", "no"}
	}
	if options != nil {
		want = strings.Join(options, " or ")
	}
	earlier := r.earlier
	r.earlier = nil
	a, err := r.ask(ctx, []chat.Message{{Role: chat.User, Text: "Answer one question about a text with nothing but " + want + ", or with unknown.\nQuestion: " + e.Question + "\nText: " + text}}, nil)
	r.earlier = earlier
	if err != nil {
		return nil, err
	}
	said := strings.Trim(strings.TrimSpace(a.Text), ".\"'`")
	for i, option := range options {
		switch {
		case !strings.EqualFold(option, said):
		case e.Kind == "yes_no":
			return jsontext.Value(strconv.FormatBool(i == 0)), nil
		default:
			return jsontext.Value(chat.Quote(option)), nil
		}
	}
	if n, err := strconv.ParseFloat(said, 64); err == nil && e.Kind == "number" && n >= *e.Min && n <= *e.Max {
		return jsontext.Value(strconv.FormatFloat(n, 'g', -1, 64)), nil
	}
	return nil, nil
}
