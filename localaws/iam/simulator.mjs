// Asks the IAM simulator about every request on standard input; answers on standard output. See localaws/iam/simulator.py.
import { createInterface } from 'node:readline'
import { allowedContextKeysForRequest, runSimulation, runUnsafeSimulation } from '@cloud-copilot/iam-simulate'

// IAM's reference lists no resource for these actions, so the simulator would require '*'. IAM itself checks the state
// machine's ARN: https://github.com/NOAA-OWP/hydrovis/issues/837, and `grantTaskResponse` of the CDK.
const UNKNOWN_TO_THE_REFERENCE = new Set(['states:SendTaskSuccess', 'states:SendTaskFailure', 'states:SendTaskHeartbeat'])

// The reference also lacks the parameters and documents that AWS publishes, whose ARNs have no account.
const PUBLISHED = /^arn:[a-z-]+:ssm:[a-z0-9-]+::(parameter\/aws\/service\/|document\/AWS-)/
const unknown = ({ action, resource }) => UNKNOWN_TO_THE_REFERENCE.has(action) || PUBLISHED.test(resource)

// Of the keys with a part of their own name the simulator knows those with a slash and not `kms:EncryptionContext:`, which it would
// drop from the request. It takes them as tags of that name: each stays a key by itself, for the same actions on the same key.
const asTags = (text) => text.replaceAll('"kms:EncryptionContext:', '"aws:ResourceTag/kms:EncryptionContext:')

// A wildcard of IAM stands for any character. The simulator makes it `.` of a regular expression, which no line break fits.
const onOneLine = (text) => text.replace(/[\n\r\u2028\u2029]/g, '\ufffd')

// A service has no account; the resource's ARN then names the resource's account.
const simulation = ({ principal, action, resource, context, resource_policy, session_policy }, policies) => ({
  request: {
    principal,
    action,
    resource: { resource: onOneLine(resource), accountId: principal.split(':')[4] ?? resource.split(':')[4] },
    contextVariables: context,
  },
  ...(resource_policy ? { resourcePolicy: resource_policy } : {}),
  ...(session_policy ? { sessionPolicy: session_policy } : {}),
  identityPolicies: Object.entries(policies).map(([name, policy]) => ({ name, policy })),
  serviceControlPolicies: [],
  resourceControlPolicies: [],
})

const statements = (policies) =>
  Object.entries(policies).flatMap(([name, policy]) =>
    policy.Statement.map((statement, index) => ({ name, index, alone: { [name]: { ...policy, Statement: [statement] } } })))

function withoutTheReference(request, policies) {
  const by = statements(policies)
    .filter(({ alone }) => runUnsafeSimulation(simulation(request, alone), {}) === 'Allowed')
    .map(({ name, index }) => [name, index])
  return { allowed: by.length > 0, ignored: [], error: '', by }
}

async function ask(request, policies) {
  if (unknown(request)) return withoutTheReference(request, policies)
  const answer = await runSimulation(simulation(request, policies), {})
  if (answer.resultType === 'error') return { allowed: false, ignored: [], error: JSON.stringify(answer.errors), by: [] }
  const results = answer.resultType === 'single' ? [answer.result] : answer.results
  return {
    allowed: answer.overallResult === 'Allowed',
    ignored: [...new Set(results.flatMap((one) => one.ignoredContextKeys ?? []))],
    error: '',
    by: results.flatMap((one) => (one.analysis.identityAnalysis?.allowStatements ?? [])
      .map(({ policyId, statement }) => [policyId, statement.index() - 1])),
  }
}

async function keysOf(question) {
  if (unknown(question)) return []
  const [service, name] = question.action.split(':')
  return allowedContextKeysForRequest(service, name, question.resource)
}

// One document a line, one answer a line.
for await (const line of createInterface({ input: process.stdin })) {
  const { policies = {}, requests = [], keys = [] } = JSON.parse(asTags(line))
  const answers = []
  for (const request of requests) answers.push(await ask(request, policies[request.principal] ?? {}))
  const known = []
  for (const one of keys) known.push(await keysOf(one))
  process.stdout.write(JSON.stringify({ answers, keys: known }) + '\n')
}
