package ops

import "testing"

func TestDescribeService(t *testing.T) {
	for properties, want := range map[string]string{
		"": "", "LoadState=not-found\nActiveState=inactive\n": "",
		"LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\n": "active (running)",
		"LoadState=loaded\nActiveState=inactive\nSubState=dead\nResult=success\n": "stopped: sudo systemctl start " +
			"agentsite starts it",
		"Result=exit-code\nLoadState=loaded\nActiveState=failed\nSubState=failed\n": "failed (exit-code): sudo " +
			"systemctl restart agentsite starts it",
		"LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=watchdog": "activating (auto-restart)",
	} {
		if got := describeService(properties); got != want {
			t.Errorf("%q: %q, want %q", properties, got, want)
		}
	}
}
