package mcp_test

import (
	"slices"
	"strings"
	"testing"

	"agentsite/transport/mcp"
	"agentsite/transport/rpc"
)

// TestRevisions: of what discover lists, the revisions without a handshake are answered, and the others, and those
// that nobody knows yet, refused with the list. Each list is sorted, newest first, as HasHandshake takes it to be.
func TestRevisions(t *testing.T) {
	b := newBench()
	sorted := slices.Clone(mcp.Versions)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	if !slices.Equal(sorted, mcp.Versions) || rpc.Revisions[0] != rpc.Revision {
		t.Errorf("%q", mcp.Versions)
	}
	for _, revision := range append([]string{"2027-12-31"}, mcp.Versions...) {
		got := b.lines(t, strings.Replace(message("tools/list", "", "{}"), rpc.Revision, revision, 1), nil)[0]
		if slices.Contains(rpc.Revisions, revision) {
			if field(t, got, "result", "tools") == nil || rpc.HasHandshake(revision) {
				t.Errorf("%s: %s", revision, got)
			}
			continue
		}
		if field(t, got, "error", "code") != -32022.0 || field(
			t, got, "error", "data", "supported",
		) == nil || rpc.HasHandshake(revision) != slices.Contains(rpc.Handshakes, revision) {
			t.Errorf("%s: %s", revision, got)
		}
	}
}
