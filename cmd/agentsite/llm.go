package main

import (
	"fmt"

	"agentsite/agents/llm"
	"agentsite/cmd/internal/hosting"
	"agentsite/cmd/internal/site"

	"github.com/spf13/cobra"
)

func (a *app) llmCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "llm", GroupID: groupBoard, Args: noArgs, RunE: help, Short: "Check language models"}
	var file string
	check := &cobra.Command{
		Use: "check AGENT", Args: exactly("AGENT"), Short: "Ask a language model some things, and report whether it is fit for a site",
		Long: `Ask the model of an agent of the configuration some ten things: whether its server answers, has
the context that the configuration says, and calls tools when it should and only then. No site
needs to run, and nothing is moved. The requests cost what they cost at the server, and
count for no budget.`,
		Example: "  agentsite llm check gardener",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, at, err := site.CheckBoard(file)
			if err != nil {
				return err
			}
			model, err := hosting.Model(cfg, at, args[0])
			if err != nil {
				return err
			}
			failed := 0
			err = model.Check(cmd.Context(), func(f llm.Finding) {
				word := "ok"
				if !f.OK {
					word = "FAILED"
					failed++
				}
				a.print(f, "%s  %s  %s", pad(word, len("FAILED")), pad(f.Check, len("restraint")), f.Says)
			})
			if err == nil && failed > 0 {
				err = coded{exitFailure, fmt.Errorf("%s failed; docs/llm.md says what to change", counted(failed, "check"))}
			}
			return err
		},
	}
	check.Flags().StringVar(&file, "config", "", "the configuration (default: agentsite.yaml)")
	cmd.AddCommand(check)
	return cmd
}
