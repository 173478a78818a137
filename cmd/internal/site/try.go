package site

import (
	"context"
	"time"

	"agentsite/agents/rule/trial"
	"agentsite/cmd/internal/hosting"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/trials"
)

// TryRules tries the rules of a configuration over a past, without a running site. A reading of a point is
// good for goodFor, and zone is that of the rules' clock.
func TryRules(
	ctx context.Context, cfg *config.Site, past trial.Source, goodFor func(string) time.Duration, zone *time.Location,
	q trial.Request,
) (trial.Result, error) {
	agents, err := hosting.Configured(cfg)
	if err != nil {
		return trial.Result{}, err
	}
	plan, err := devices.NewPlan(cfg)
	if err != nil {
		return trial.Result{}, err
	}
	points, _ := cfg.Described()
	o := trial.Options{GoodFor: goodFor, Source: past, Points: points, Policies: plan.Policies(), Location: zone}
	return trials.Run(ctx, o, agents, q)
}
