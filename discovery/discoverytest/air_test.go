package discoverytest

import (
	"testing"
	"time"

	"agentsite/discovery"
)

func TestAir(t *testing.T) {
	air := new(Air)
	Run(t, 5*time.Second, func(*testing.T) discovery.Medium { return air })
}
