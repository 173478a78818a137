package principal

import "testing"

// TestParse: an ID has the kind that the site gave it, whatever name is in it.
func TestParse(t *testing.T) {
	for id, want := range map[string]Kind{
		"": Unknown, "ann": Unknown, "site": Unknown, "rule": Unknown, "?": Unknown, "Local": Unknown, " local": Unknown,
		"local": Local, "local-agent": LocalAgent, "token": SiteToken,
		"token:kitchen.1f3a0b9c": Token, "token:rule.1f3a0b9c": Token, "token:local.1f3a0b9c": Token, "token:x": Token,
		"did:key:z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvktH": Key, "did:key:rule": Key,
		"rule:frost": Hosted, "llm:local": Hosted, "rule:token": Hosted, "local:token": Hosted, "mcp:rule": Hosted,
		"did:wba": Unknown, "did:wba:example.com": Unknown, "rule:": Unknown, ":frost": Unknown, "rule:a:b": Unknown,
		"rule:a b": Unknown, "Rule:frost": Unknown, "rule:frost\n": Unknown, "local:": Unknown, "task/1": Unknown,
	} {
		got := Parse(id)
		if got != (Principal{Kind: want, ID: id}) {
			t.Errorf("%q is %+v, not of kind %d", id, got, want)
		}
		if kind, name := got.Agent(); (kind != "") != (want == Hosted) || want == Hosted && Agent(kind, name) != got {
			t.Errorf("%q is the agent %q of kind %q", id, name, kind)
		}
	}
	for _, p := range []Principal{{ID: "rule:frost"}, {Kind: Token, ID: "rule:frost"}} {
		if kind, _ := p.Agent(); kind != "" {
			t.Errorf("%+v is an agent by its name", p)
		}
	}
}
