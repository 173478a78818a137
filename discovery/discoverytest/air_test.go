package discoverytest

import (
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
)

func TestAir(t *testing.T) {
	air := new(Air)
	Run(t, 5*time.Second, func(*testing.T, identity.Key) discovery.Medium { return air })
}
