// The Vercel AI SDK over @ai-sdk/openai-compatible: text, streams, objects, tools, reasoning, errors.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateObject, generateText, Output, stepCountIs, streamObject, streamText, tool } from "ai";
import { z } from "zod";

const PLAIN = "The tide is high at noon, and again at midnight.";
const Tide = z.object({
  port: z.enum(["Brest", "Dover", "Saint-Malo"]),
  height_m: z.number().int().min(0).max(20),
  is_rising: z.boolean(),
});
const tide_at = tool({
  description: "Tells the tide at a port.",
  inputSchema: z.object({ port: z.enum(["Brest", "Dover"]), day: z.number().int().min(0).max(9) }),
  execute: async ({ port, day }) => `high at ${port} on day ${day}`,
});
const CALL = '[[{"calls": [["tide_at", {"port": "Brest", "day": 2}]]}]]';
const QUIET = { maxRetries: 0, temperature: 0, maxOutputTokens: 200 };

function model(kind, name) {
  const provider = createOpenAICompatible({
    name: "tidegate",
    baseURL: process.env[`${kind}_URL`],
    apiKey: "none",
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return provider(name ?? process.env[`${kind}_MODEL`]);
}

test("generateText answers with its usage", async () => {
  const result = await generateText({ ...QUIET, model: model("SCRIPTED"), prompt: "When is the tide high?" });
  assert.equal(result.text, PLAIN);
  assert.equal(result.finishReason, "stop");
  assert.equal(result.usage.outputTokens, 12);
  assert.equal(result.usage.totalTokens, result.usage.inputTokens + 12);
});

test("streamText gives the same in parts, with its usage", async () => {
  const result = streamText({ ...QUIET, model: model("SCRIPTED"), prompt: "When is the tide high?" });
  const parts = [];
  for await (const part of result.textStream) parts.push(part);
  assert.ok(parts.length > 3);
  assert.equal(parts.join(""), PLAIN);
  assert.equal((await result.usage).outputTokens, 12);
  assert.equal(await result.finishReason, "stop");
});

test("the real model stops at the limit, and says so", async () => {
  const result = await generateText({ ...QUIET, maxOutputTokens: 8, model: model("REAL"), prompt: "What is salty?" });
  assert.equal(result.finishReason, "length");
  assert.equal(result.usage.outputTokens, 8);
});

test("a stop sequence ends the text", async () => {
  const result = await generateText({
    ...QUIET,
    model: model("SCRIPTED"),
    prompt: "When is the tide high?",
    stopSequences: ["noon"],
  });
  assert.equal(result.text, "The tide is high at ");
});

for (const kind of ["REAL", "SCRIPTED"]) {
  test(`generateObject keeps the schema: ${kind}`, async () => {
    const result = await generateObject({ ...QUIET, model: model(kind), schema: Tide, prompt: "7 metres at 'Brest'?" });
    assert.equal(typeof result.object.is_rising, "boolean");
  });

  test(`generateText with an output object keeps the schema: ${kind}`, async () => {
    const result = await generateText({
      ...QUIET,
      model: model(kind),
      output: Output.object({ schema: Tide }),
      prompt: "7 metres at 'Brest'?",
    });
    assert.equal(typeof result.output.is_rising, "boolean");
  });

  test(`a choice among words is kept: ${kind}`, async () => {
    const result = await generateObject({
      ...QUIET,
      model: model(kind),
      output: "enum",
      enum: ["rising", "falling"],
      prompt: "Is the tide rising?",
    });
    assert.ok(["rising", "falling"].includes(result.object));
  });

  for (const toolChoice of ["required", { type: "tool", toolName: "tide_at" }]) {
    const name = toolChoice === "required" ? "required" : "named";
    test(`a ${name} tool is called and run: ${kind}`, async () => {
      const result = await generateText({
        ...QUIET,
        model: model(kind),
        tools: { tide_at },
        toolChoice,
        prompt: "The tide at 'Brest' on day 2?",
      });
      assert.equal(result.toolCalls.length, 1);
      assert.match(result.toolResults[0].output, /^high at (Brest|Dover) on day \d$/);
    });
  }
}

test("streamObject grows and ends whole", async () => {
  const result = streamObject({ ...QUIET, model: model("SCRIPTED"), schema: Tide, prompt: "7 metres at 'Brest'?" });
  const parts = [];
  for await (const part of result.partialObjectStream) parts.push(part);
  assert.ok(parts.length > 1);
  assert.deepEqual(await result.object, { port: "Brest", height_m: 7, is_rising: true });
});

test("a tool is run and its answer read, in two steps", async () => {
  const result = await generateText({
    ...QUIET,
    model: model("SCRIPTED"),
    tools: { tide_at },
    stopWhen: stepCountIs(3),
    prompt: CALL,
  });
  assert.equal(result.steps.length, 2);
  assert.equal(result.steps[0].finishReason, "tool-calls");
  assert.equal(result.text, "The tools said: high at Brest on day 2");
});

test("streamed calls arrive in parts, are run, and the text follows", async () => {
  const result = streamText({
    ...QUIET,
    model: model("SCRIPTED"),
    tools: { tide_at },
    stopWhen: stepCountIs(3),
    prompt: '[[{"calls": [["tide_at", {"port": "Brest", "day": 2}], ["tide_at", {"port": "Dover", "day": 3}]]}]]',
  });
  const kinds = {};
  for await (const part of result.fullStream) kinds[part.type] = (kinds[part.type] ?? 0) + 1;
  assert.equal(kinds["tool-call"], 2);
  assert.equal(kinds["tool-result"], 2);
  assert.ok(kinds["tool-input-delta"] > 2);
  assert.equal(await result.text, "The tools said: high at Brest on day 2; high at Dover on day 3");
});

test("no tool is called when none may be", async () => {
  const result = await generateText({
    ...QUIET,
    model: model("SCRIPTED"),
    tools: { tide_at },
    toolChoice: "none",
    prompt: "When is the tide high?",
  });
  assert.equal(result.text, PLAIN);
  assert.equal(result.toolCalls.length, 0);
});

for (const isStreamed of [false, true]) {
  test(`reasoning is apart from the text: ${isStreamed ? "streamed" : "whole"}`, async () => {
    const ask = { ...QUIET, model: model("SCRIPTED"), prompt: '[[{"think": "The moon is full.", "say": "High."}]]' };
    const result = isStreamed ? streamText(ask) : await generateText(ask);
    assert.equal(await result.text, "High.");
    assert.equal((await result.reasoningText).trim(), "The moon is full.");
  });
}

test("an unknown model is a 404 with the server's words", async () => {
  const ask = generateText({ ...QUIET, model: model("REAL", "no-such-model"), prompt: "Hi" });
  await assert.rejects(ask, (fault) => {
    assert.ok(APICallError.isInstance(fault));
    assert.equal(fault.statusCode, 404);
    assert.equal(fault.isRetryable, false);
    assert.match(fault.message, /no-such-model/);
    return true;
  });
});

test("a stream that fails midway ends with an error", async () => {
  const faults = [];
  const result = streamText({
    ...QUIET,
    model: model("SCRIPTED"),
    prompt: '[[{"say": "The tide is high.", "error_after": 2}]]',
    onError: ({ error }) => faults.push(error),
  });
  for await (const _ of result.fullStream);
  assert.equal(faults.length, 1);
  assert.equal(await result.finishReason, "error");
});

test("a caller that aborts ends the stream", async () => {
  const leaving = new AbortController();
  const result = streamText({
    ...QUIET,
    maxOutputTokens: 2000,
    model: model("REAL"),
    prompt: "Tell me of the sea.",
    abortSignal: leaving.signal,
  });
  let last;
  for await (const part of result.fullStream) {
    last = part.type;
    if (part.type === "text-delta") leaving.abort();
  }
  assert.equal(last, "abort");
});
