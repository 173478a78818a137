// The words of the further views, in English and German.

export const viewsEn = {
} as const;

export const viewsDe: Record<keyof typeof viewsEn, string> = {
};
