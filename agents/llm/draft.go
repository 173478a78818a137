package llm

import (
	"context"
	"fmt"

	"agentsite/agents/tools"
	"agentsite/device"
)

const (
	draftTool     = "draft_rule"
	maxDefinition = 8 << 10
	draftHelp     = "Write the draft of a rule, which runs without a model once the owner has tried and accepted it. definition is YAML, such as " +
		"\"when: climate/temperature < 5 Cel\\nfor: 2m\\nuntil: climate/temperature > 7 Cel\\nhold: { house/heater: on }\". Tell the asker how to go on: agentsite agents try NAME."
	draftInput = `{"type":"object","required":["name","definition","may"],"additionalProperties":false,"properties":{` +
		`"name":{"type":"string","pattern":"^[a-z][a-z0-9_-]{0,23}$"},"definition":{"type":"string"},"may":{"type":"string","description":"what it needs, such as read climate, set house/heater max 5m"}}}`
)

// draft keeps the draft of a rule, and returns what the model reads of it. It does nothing by itself,
// whatever was read before: an owner looks at it.
func (r *run) draft(ctx context.Context, args tools.Args) (any, error) {
	var in map[string]string
	if err := args.Decode(&in); err != nil {
		return nil, device.Faultf(device.Invalid, "%s: %.200s", draftTool, err.Error())
	}
	name, definition, may := in["name"], in["definition"], in["may"]
	if len(in) != 3 || definition == "" || may == "" {
		return nil, device.Faultf(device.Invalid, "%s takes a name, a definition, what it may, and nothing else", draftTool)
	}
	if err := device.CheckName(name); err != nil {
		return nil, err
	}
	if len(definition) > maxDefinition {
		return nil, device.Faultf(device.Invalid, "a definition has at most %d bytes", maxDefinition)
	}
	if r.site.foreign != "" && r.agent.Tainted == taintedRefuse {
		return nil, device.Faultf(device.Denied, "refused: it has read the words of %s", r.site.foreign)
	}
	_, err := r.work.Step(ctx, "draft the rule "+name, func(ctx context.Context, _ string) (any, error) {
		return nil, r.agent.world.Draft(ctx, r.self, r.work.Task().Asker, name, may, definition)
	})
	return fmt.Sprintf("the draft %s does nothing before an owner accepts it: agentsite agents try %[1]s, then agentsite agents accept %[1]s --may PERMISSION", name), err
}
