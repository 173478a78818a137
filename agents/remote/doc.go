// Package remote implements the kind of agent that stands for another site. A hosted agent that may
// use that site sees its points as site/device/point. Each agent has its own connection and key, so
// that the other site can name the agent.
//
// The caller passes in how a site is reached, and by which key. Answers of a site are untrusted
// data, which package group cleans.
package remote
