package legacy

import (
	"context"
	"sync/atomic"
	"testing"

	"agentsite/agents"
	"agentsite/agents/skill"
	"agentsite/agents/tools"
	"agentsite/node"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestSkills: clients of older revisions find the extension, list the skills, read their files and subscribe to them.
func TestSkills(t *testing.T) {
	hub := node.NewHub(nil, forgetful{}, func(a string) string { return a })
	n := node.New(node.Parts{Hub: hub, Token: token, Tools: []tools.Agent{newFake()}})
	catalog := tools.New(n, n)
	var fewer atomic.Bool
	catalog.Skills = func() []skill.Skill {
		if fewer.Load() {
			return skill.BuiltIn()[1:]
		}
		return skill.BuiltIn()
	}
	s := New(n, catalog, "fake", "1", "")
	t.Cleanup(s.Close)
	changed := make(chan struct{}, 8)
	o := &sdk.ClientOptions{
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { changed <- struct{}{} },
	}
	client := newClient(o)
	for _, m := range []string{"skills/list", "skills/get"} {
		if err := sdk.AddSendingCustomMethod[*skillParams, *skillsAnswer](client, m); err != nil {
			t.Fatal(err)
		}
	}
	c := serveOver(t, s, client)
	if _, ok := c.InitializeResult().Capabilities.Extensions[skillsExtension]; !ok {
		t.Errorf("%+v", c.InitializeResult().Capabilities)
	}
	list, err := sdk.CallCustomMethod[*skillParams, *skillsAnswer](t.Context(), c, "skills/list", &skillParams{})
	if err != nil || len(list.Skills) != len(skill.BuiltIn()) {
		t.Fatal(list, err)
	}
	for i, want := range skill.BuiltIn() {
		uri := list.Skills[i].URI
		got, err := sdk.CallCustomMethod[*skillParams, *skillsAnswer](t.Context(), c, "skills/get", &skillParams{URI: uri})
		if err != nil || got.Skill.URI != want.Entry.URI || got.Skill.Resources[0] != want.Entry.Resources[0] {
			t.Errorf("%s: %+v %v", uri, got, err)
		}
		file, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || file.Contents[0].Text != want.Text || file.Contents[0].MIMEType != skill.MIME {
			t.Errorf("%s: %+v %v", uri, file, err)
		}
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if _, err := sdk.CallCustomMethod[*skillParams, *skillsAnswer](
		t.Context(), c, "skills/get", &skillParams{URI: "skill://none/SKILL.md"},
	); !hasCode(err, jsonrpc.CodeInvalidParams) {
		t.Error(err)
	}
	fewer.Store(true)
	hub.Announce(agents.Change{Resources: true})
	<-changed
}

// skillsAnswer is an answer of either method.
type skillsAnswer struct {
	sdk.ResultBase
	Skills []skill.Entry `json:"skills"`
	Skill  skill.Entry   `json:"skill"`
}
