package llm

import (
	"context"
	"fmt"

	"agentsite/device"
)

const (
	draftTool = "draft_rule"
	draftHelp = "Write the draft of a rule, which runs without a model once the owner has tried and accepted it. definition is YAML, such as " +
		"\"when: climate/temperature < 5 Cel\\nfor: 2m\\nuntil: climate/temperature > 7 Cel\\nhold: { house/heater: on }\". Tell the asker how to go on: agentsite agents try NAME."
	draftInput = `{"type":"object","required":["name","definition","may"],"additionalProperties":false,"properties":{` +
		`"name":{"type":"string","pattern":"^[a-z][a-z0-9_-]{0,23}$"},"definition":{"type":"string"},"may":{"type":"string","description":"what it needs, such as read climate, set house/heater max 5m"}}}`
)

// draft keeps the draft of a rule. It does nothing by itself, whatever was read before: an owner looks
// at it.
func (r *run) draft(ctx context.Context, args arguments) result {
	var in struct {
		Name       string `json:"name"`
		Definition string `json:"definition"`
		May        string `json:"may"`
	}
	if err := args.Decode(&in); err != nil {
		return result{fault: device.Faultf(device.Invalid, "%s: %.200s", draftTool, err.Error())}
	}
	if err := device.CheckName(in.Name); err != nil {
		return result{fault: err}
	}
	if r.site.foreign != "" && r.Tainted == taintedRefuse {
		return result{fault: device.Faultf(device.Denied, "refused: it has read the words of %s", r.site.foreign)}
	}
	_, err := r.work.Step(ctx, "draft the rule "+in.Name, func(ctx context.Context, _ string) (any, error) {
		return nil, r.world.Draft(ctx, r.self, in.Name, in.May, in.Definition)
	})
	if err != nil {
		return result{fault: err}
	}
	return result{value: map[string]string{"draft": in.Name, "next": fmt.Sprintf("it does nothing before an owner accepts it: agentsite agents try %s, then agentsite agents accept %[1]s --may PERMISSION", in.Name)}}
}
