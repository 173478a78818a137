package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"agentsite/cmd/internal/peer"
	"agentsite/transport/mcp/client"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

func (a *app) toolsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tools", GroupID: groupAgents, Args: noArgs,
		Short: "List the tools that agents are offered",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(func(s *session) error {
				list, err := s.tools(cmd.Context())
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(toolsResult{list})
				}
				var rows [][]string
				for _, t := range list {
					first := firstSentence(t.Description)
					rows = append(rows, []string{t.Name, arguments(t), strings.TrimSuffix(first, ".")})
				}
				return table(a.out, []string{"TOOL", "ARGUMENTS", "WHAT IT DOES"}, rows)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

type toolsResult struct {
	Tools []client.Tool `json:"tools"`
}

func (s *session) tools(ctx context.Context) ([]client.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.Tools(ctx)
	return list, s.app.unreached(err)
}

// arguments lists a tool's, those first that it needs and the others in brackets.
func arguments(t client.Tool) string {
	var schema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	if t.Input.Decode(&schema) != nil {
		return "?"
	}
	all := schema.Required
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(schema.Required, name) {
			all = append(all, "["+name+"]")
		}
	}
	return strings.Join(all, " ")
}

func (a *app) callCommand() *cobra.Command {
	var picture string
	cmd := &cobra.Command{
		Use: "call TOOL [JSON]", GroupID: groupAgents,
		Short: "Call a tool as an agent would",
		Long: `Call a tool as an agent would, with a JSON object of arguments: as a word, or from
standard input for "-". It prints the structured result.`,
		Example: `  agentsite call read_points '{"points":["greenhouse/temperature"]}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly([]string{"TOOL", "JSON"}[:max(1, min(len(args), 2))]...)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			args, err := a.jsonObject(words[1:])
			if err != nil {
				return err
			}
			return a.with(func(s *session) error {
				res, err := s.call(cmd.Context(), words[0], args)
				var refused *client.Refusal
				if errors.As(err, &refused) && refused.Kind == "invalid" {
					return fmt.Errorf("%w (agentsite tools)", err)
				}
				if err != nil {
					return err
				}
				return a.printResult(res, picture)
			})
		},
		ValidArgsFunction: a.completeTools,
	}
	a.keyFlag(cmd)
	cmd.Flags().StringVar(&picture, "out", "", "save the picture or sound that comes with the result in this file")
	return cmd
}

// jsonObject reads a tool's arguments. They go out as they are written.
func (a *app) jsonObject(words []string) (jsontext.Value, error) {
	text := "{}"
	if len(words) == 1 {
		text = words[0]
	}
	if text == "-" {
		const most = 1 << 20 // more than a site reads
		b, err := io.ReadAll(io.LimitReader(a.in, most))
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	v := jsontext.Value(text)
	if !v.IsValid() || v.Kind() != '{' { // of the JSON that a site reads: names once, UTF-8
		return nil, usagef(`the arguments are a JSON object, each name once and in UTF-8, such as '{"points":["greenhouse/temperature"]}', not %.60q`, text)
	}
	return v, nil
}

// printResult prints what a tool answered, and saves what came with it.
func (a *app) printResult(res client.Answer, file string) error {
	texts := res.Texts
	switch {
	case res.JSON == nil:
	case a.json:
		if err := a.printLine(res.JSON); err != nil {
			return err
		}
		texts = nil // they say the same again
	default:
		v := jsontext.Value(res.JSON).Clone()
		if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		texts = []string{string(v)}
	}
	for _, t := range texts {
		if _, err := fmt.Fprintln(a.out, cleanLines(t)); err != nil {
			return err
		}
	}
	return a.save(res.Files, file)
}

// save writes the first picture or sound to a file, where one is named.
func (a *app) save(files []client.File, file string) error {
	switch {
	case len(files) == 0 && file != "":
		return coded{exitFailure, fmt.Errorf("nothing came that could be saved in %s", file)}
	case len(files) == 0:
		return nil
	case file == "":
		_, err := fmt.Fprintf(a.errs, "agentsite: %s came with it (%s): save it with --out FILE\n", clean(files[0].MIME), byteSize(float64(len(files[0].Data))))
		return err
	}
	return os.WriteFile(file, files[0].Data, 0o600)
}

func (a *app) connectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "connect", GroupID: groupAgents, Args: noArgs,
		Short: "Speak MCP on standard input and output, for an MCP client",
		Long: `Speak MCP on standard input and output, for an MCP client, which starts this command: one
entry for the whole house. It presents the sites that one of your agents knows, by that
agent's key and within what you permitted it ("agentsite agents allow"), and the site that
runs on this machine, as one set of tools. It opens no hardware.

With --site or --peer it presents that one alone, wherever it is. With --data, or without
--as while your assistant knows no site, it carries MCP to the site that runs on this
machine and to no other.`,
		Example: "  agentsite connect\n  agentsite connect --as watchman",
		RunE: func(cmd *cobra.Command, _ []string) error {
			only := cmp.Or(a.site, a.peer)
			switch {
			case a.url != "":
				return usagef("connect takes no --url: clients that speak HTTP go there themselves")
			case a.data != "" && a.as != "":
				return usagef("--as is for the sites that an agent knows: leave out --data")
			}
			folder, err := a.siteFolder()
			if err != nil {
				return err
			}
			if a.data == "" {
				agent, some, err := peer.Presented(a.as, only)
				if err != nil {
					return err
				}
				if some {
					return peer.ConnectAs(cmd.Context(), agent, folder, only, version, a.in, a.out)
				}
			}
			err = peer.Connect(cmd.Context(), folder, a.in, a.out)
			if err != nil {
				return a.undialled(err)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// firstSentence is enough of a description for a list.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(first, ".")
}
