package mcp_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/skill"
	"agentsite/agents/tools"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/rpc"
)

// newSkillBench makes a bench whose site offers skills; its library is the catalog.
func newSkillBench() *bench {
	hub := node.NewHub(nil, forgetful{}, func(a string) string { return "t:" + a })
	ending, end := context.WithCancel(context.Background())
	n := node.New(node.Parts{Hub: hub, Token: "secret", Tools: []tools.Agent{shelf{}}})
	catalog := tools.New(n, n)
	catalog.Skills = skill.BuiltIn
	methods := mcp.New(ending, n, catalog, mcp.Implementation{Name: "test", Version: "1"}, "").Methods()
	return &bench{hub: hub, dispatcher: rpc.NewDispatcher(methods), end: end}
}

// TestSkills: each skill is listed with the digest of what resources/read returns, and among the resources.
func TestSkills(t *testing.T) {
	b := newSkillBench()
	one := func(m string) string {
		t.Helper()
		got := b.lines(t, m, nil)
		if len(got) != 1 {
			t.Fatalf("%s: %q", m, got)
		}
		return got[0]
	}
	if text := one(
		message("server/discover", "", "{}"),
	); field(t, text, "result", "capabilities", "extensions", "io.modelcontextprotocol/skills") == nil {
		t.Error(text)
	}
	list := one(message("skills/list", "", "{}"))
	if field(t, list, "result", "resultType") != "complete" || field(
		t, list, "result", "ttlMs",
	) != 300000.0 || field(t, list, "result", "cacheScope") != "private" {
		t.Error(list)
	}
	resources := one(message("resources/list", "", "{}"))
	all, _ := field(t, list, "result", "skills").([]any)
	if len(all) != len(skill.BuiltIn()) {
		t.Fatal(list)
	}
	for _, s := range all {
		entry := s.(map[string]any)
		uri := entry["uri"].(string)
		file := entry["resources"].([]any)[0].(map[string]any)
		read := field(
			t, one(message("resources/read", `"uri":"`+uri+`"`, "{}")), "result", "contents",
		).([]any)[0].(map[string]any)
		text := read["text"].(string)
		if read["mimeType"] != "text/markdown" || file["digest"] != fmt.Sprintf(
			"sha256:%x", sha256.Sum256([]byte(text)),
		) || file["size"] != float64(len(text)) {
			t.Errorf("%s: %v", uri, file)
		}
		if !strings.Contains(resources, `"uri":"`+uri+`"`) {
			t.Errorf("%s is no resource: %s", uri, resources)
		}
		got := one(message("skills/get", `"uri":"`+uri+`"`, "{}"))
		if field(
			t, got, "result", "skill", "uri",
		) != uri || field(t, got, "result", "nextCursor") != nil || field(t, got, "result", "ttlMs") == nil {
			t.Error(got)
		}
	}
	for _, wrong := range []string{
		message(
			"skills/list", `"cursor":"x"`, "{}",
		), message("skills/get", `"uri":"skill://none/SKILL.md"`, "{}"), message("skills/get", "", "{}"),
		message(
			"resources/read", `"uri":"skill://use-a-site/../write-a-rule/SKILL.md"`, "{}",
		), message("resources/read", `"uri":"skill://none/SKILL.md"`, "{}"),
	} {
		if got := one(wrong); field(t, got, "error", "code") != -32602.0 {
			t.Errorf("%s: %s", wrong, got)
		}
	}
	if got := b.lines(
		t, message("skills/list", "", "{}"), headers{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"skills/list"}},
	); field(t, got[0], "result", "skills") == nil {
		t.Error(got) // Mcp-Name goes with none of these
	}
}

// TestSkillsOfNobody: a caller that is not authenticated gets the usual refusal, and a server without skills has no
// such method.
func TestSkillsOfNobody(t *testing.T) {
	for _, m := range []string{"skills/list", "skills/get"} {
		newSkillBench().say(t.Context(), rpc.JSON, []byte(
			message(m, `"uri":"skill://use-a-site/SKILL.md"`, "{}"),
		), rpc.Sender{}, nil, func(got string) {
			if field(t, got, "error", "code") != 403.0 {
				t.Errorf("%s: %s", m, got)
			}
		})
		if got := newBench().lines(t, message(m, "", "{}"), nil); field(t, got[0], "error", "code") != -32601.0 {
			t.Errorf("%s: %s", m, got)
		}
	}
}

// TestSkillNeverChanges: a subscription to a skill is as quiet as one to a point that does not change, and hears of
// the list.
func TestSkillNeverChanges(t *testing.T) {
	b := newSkillBench()
	heard := make(chan string, 4)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.say(ctx, rpc.JSON, []byte(message("subscriptions/listen",
			`"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["skill://use-a-site/SKILL.md"]}`, "{}")),
			rpc.Sender{
				Who: principal.Principal{Kind: principal.SiteToken, ID: principal.SiteTokenID},
			}, nil, func(s string) { heard <- s })
	}()
	if s := <-heard; !strings.Contains(s, "acknowledged") {
		t.Fatal(s)
	}
	b.hub.Announce(agents.Change{Resources: true})
	if s := <-heard; !strings.Contains(s, "notifications/resources/list_changed") {
		t.Error(s)
	}
	cancel()
	<-ended
}
