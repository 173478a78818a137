package main

import (
	"testing"

	"agentsite/transport/owner"
)

// TestChatCalls: a chat offers only the agent's calls for approval, whatever others write into
// their calls.
func TestChatCalls(t *testing.T) {
	for who, want := range map[string]bool{
		"llm:gardener": true, "routine:warming": true,
		"token:gardener": false, "did:key:z6MkOther": false, "local": false, "": false,
	} {
		if got := isFor(owner.Request{Who: who, Via: []string{"local", "task/5DKQ"}}, "5DKQ"); got != want {
			t.Errorf("a call of %q: %t", who, got)
		}
	}
	if isFor(owner.Request{Who: "llm:gardener", Via: []string{"local", "task/OTHER"}}, "5DKQ") {
		t.Error("a call for another task")
	}
}
