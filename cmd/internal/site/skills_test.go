package site_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"agentsite/cmd/internal/sitetest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestOwnSkill: a reload offers the owner's skill beside the configuration, and tells connected clients. One with a
// mistake is left out, and the others stay.
func TestOwnSkill(t *testing.T) {
	s := sitetest.Start(t, "site: { name: shed }\nhttp: { https: none }\ndevices:\n  climate: { driver: sim, model: "+
		"climate }\n")
	changed := make(chan struct{}, 8)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { changed <- struct{}{} },
	})
	c, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{
			Transport: withToken{s.Token, &http.Transport{DisableKeepAlives: true}},
		},
	}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	listed := func(uri string) bool {
		t.Helper()
		all, err := c.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all.Resources, func(r *sdk.Resource) bool { return r.URI == uri })
	}
	const own, builtIn = "skill://water/SKILL.md", "skill://check-up/SKILL.md"
	if listed(own) || !listed(builtIn) {
		t.Fatal("before there is one")
	}
	folder := filepath.Join(filepath.Dir(s.File), "skills", "water")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text  string
		there bool
	}{
		{"---\nname: water\ndescription: How we water.\n---\nAt night.\n", true},
		{"---\nname: water\n---\nAt night.\n", false},
	} {
		if err := os.WriteFile(filepath.Join(folder, "SKILL.md"), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Hangup <- syscall.SIGHUP
		for listed(own) != tt.there {
			<-changed
		}
		if !listed(builtIn) {
			t.Error("the skills of the program are gone")
		}
	}
}
