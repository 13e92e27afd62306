import { onchainTable } from "ponder";

export const transfer = onchainTable("transfer", (column) => ({
  id: column.text().primaryKey(),
  block: column.integer().notNull(),
  logIndex: column.integer().notNull(),
  from: column.hex().notNull(),
  to: column.hex().notNull(),
  value: column.bigint().notNull(),
  gasUsed: column.bigint().notNull(),
}));

export const block = onchainTable("block", (column) => ({
  number: column.integer().primaryKey(),
  hash: column.hex().notNull(),
}));
