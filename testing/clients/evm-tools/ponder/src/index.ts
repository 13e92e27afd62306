import { ponder } from "ponder:registry";
import { block, transfer } from "ponder:schema";

ponder.on("Token:Transfer", async ({ event, context }) => {
  await context.db.insert(transfer).values({
    id: `${event.block.number}/${event.log.logIndex}`,
    block: Number(event.block.number),
    logIndex: event.log.logIndex,
    from: event.args.from,
    to: event.args.to,
    value: event.args.value,
    gasUsed: event.transactionReceipt.gasUsed,
  });
});

ponder.on("Every:block", async ({ event, context }) => {
  await context.db.insert(block).values({ number: Number(event.block.number), hash: event.block.hash });
});
