//go:build e2e

package access

import (
	"os"
	"testing"
)

// TestMain runs this test program as a crowd of clients or as a flood where the
// environment asks for it, and the tests otherwise: what attacks a site has processes of its own.
func TestMain(m *testing.M) {
	if at := os.Getenv(crowdEnv); at != "" {
		crowd(at)
	}
	if to := os.Getenv(floodEnv); to != "" {
		flooding(to)
	}
	os.Exit(m.Run())
}
